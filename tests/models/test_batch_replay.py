"""A recorded batch, run again with other executors, partitions, rows and triggers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from homeostat.models.batch_replay import DRIVER, KeyCurve
from homeostat.models.performance import predict
from homeostat.models.task_cost_model import Slowing, TaskCost
from support.batch_models import SETUP, model, stage


def test_a_batch_is_the_driver_and_each_stage_in_whole_waves() -> None:
    # 12,000 rows in 12 tasks of 1 s: on 3 slots 4 waves, on 5 slots 3, on 12 or more 1.
    seconds = {n: model().expected_s(12_000, replace(SETUP, executors=n)) for n in (3, 5, 12, 40)}
    assert seconds == pytest.approx({3: 4.5, 5: 3.5, 12: 1.5, 40: 1.5})


def test_other_partitions_cut_the_same_rows_and_each_task_has_its_own_cost() -> None:
    batches = model(stage(task_s=0.1))
    finer = replace(SETUP, partitions={"count": 24})
    assert batches.expected_s(12_000, SETUP) == pytest.approx(0.5 + 4 * 1.1)
    assert batches.expected_s(12_000, finer) == pytest.approx(0.5 + 8 * 0.6)


def test_a_hot_partition_stays_hot_however_many_there_are() -> None:
    shares = np.array([0.45, *[0.05] * 11])
    hot = stage(shares=shares)
    assert hot.cut_into(24).max() == pytest.approx(0.4 + 0.6 / 24)
    assert hot.cut_into(24).sum() == pytest.approx(1.0)
    path = model(hot).critical_path(12_000, SETUP)
    assert path.blame == "count"
    assert "largest partition" in path.why
    assert path.parts_s["count"] == pytest.approx(5.4)
    assert path.executors < 12


def test_the_critical_path_tells_where_more_executors_end_to_help() -> None:
    path = model().critical_path(12_000, SETUP)
    assert (path.executors, path.blame) == (12, "count")
    busy_driver = model(driver_s=5.0).critical_path(12_000, SETUP)
    assert busy_driver.blame == DRIVER
    assert busy_driver.seconds == pytest.approx(6.0)


def test_the_critical_path_is_as_slow_as_the_batches_are() -> None:
    slower = replace(model(), pace=1.4)
    path = slower.critical_path(12_000, SETUP)
    assert path.seconds == pytest.approx(slower.plain_s(12_000, replace(SETUP, executors=path.executors)))
    assert path.parts_s == pytest.approx({DRIVER: 0.5, "count": 1.4})


def test_tasks_that_share_a_cpu_gain_nothing_from_more_executors() -> None:
    burning = replace(stage(), cost=TaskCost(0.0, 0.001, at_executors=3.0, slowing=Slowing(1.0, 1.0)))
    assert model(burning).expected_s(12_000, replace(SETUP, executors=6)) == pytest.approx(4.5)
    assert model(burning).critical_path(12_000, SETUP).executors == 1


def test_executors_without_a_task_take_no_cpu_from_the_others() -> None:
    cost = TaskCost(0.0, 0.001, at_executors=6.0, slowing=Slowing(1.0, 1.0), up_to_executors=6.0)
    burning = model(replace(stage(), cost=cost), slots=2)
    six, twelve = (predict(burning, 500.0, replace(SETUP, executors=count)) for count in (6, 12))
    assert six.batch_s == twelve.batch_s
    assert twelve.unknown == ()


def test_where_executors_take_the_cpu_from_each_other_more_may_take_less_and_that_is_said() -> None:
    shared = model(replace(stage(), cost=TaskCost(0.0, 0.001, at_executors=3.0, slowing=Slowing(0.5, 0.5))))
    eight, nine = (predict(shared, 1_000.0, replace(SETUP, executors=count)) for count in (8, 9))
    assert nine.saturation_per_s.middle < eight.saturation_per_s.middle
    assert "executors slow each other down at" in nine.critical.why


def test_a_slow_worker_counts_apart_from_the_tasks() -> None:
    healthy, slowed = model(), model(slow=(4.0,))
    assert healthy.expected_s(12_000, SETUP) == pytest.approx(4.5)
    assert slowed.expected_s(12_000, SETUP) > 5.0


def test_updated_keys_grow_ever_less_with_the_rows() -> None:
    curve = KeyCurve(1000.0)
    assert curve.among(10.0) == pytest.approx(10.0, rel=0.01)
    assert curve.among(1e6) == pytest.approx(1000.0)
    assert KeyCurve(math.inf).among(500.0) == 500.0
    assert KeyCurve().among(500.0) == 0.0
