"""A recorded batch, run again with other executors, partitions, rows and triggers."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.observation import Array
from homeostat.models.batch_replay import DRIVER, BatchModel, KeyCurve, Setup, Stage, makespan_s
from homeostat.models.performance import catch_up_s, predict
from homeostat.models.task_cost import NO_SLOWING, Slowing, TaskCost

EVEN = np.full(12, 1.0 / 12)
SETUP = Setup(executors=3, trigger_s=10.0)


def stage(name: str = "count", *, row_s: float = 0.001, task_s: float = 0.0, shares: Array = EVEN) -> Stage:
    return Stage(name, TaskCost(task_s, row_s, slowing=NO_SLOWING), shares, 1.0, np.zeros((3, len(shares))))


def model(*stages: Stage, driver_s: float = 0.5, slots: int = 1, slow: tuple[float, ...] = ()) -> BatchModel:
    return BatchModel(stages or (stage(),), np.full(3, driver_s), np.zeros(3), slots, SETUP, slow)


def test_tasks_start_in_order_each_on_the_slot_that_is_free_first() -> None:
    # 4 | 1 1 1 then 3: the last one begins at 3, behind the three short ones.
    assert makespan_s(np.array([4.0, 1.0, 1.0, 1.0, 3.0]), 2) == 6.0
    # The order matters: the long ones first is shorter.
    assert makespan_s(np.array([4.0, 3.0, 1.0, 1.0, 1.0]), 2) == 5.0
    assert makespan_s(np.array([2.0, 2.0]), 2, (3.0,)) == 6.0
    assert makespan_s(np.empty(0), 4) == 0.0


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


def test_the_rate_at_which_a_batch_fills_its_trigger() -> None:
    # 3 slots take 3,000 rows/s, for 9.5 of 10 s.
    found = predict(model(), 2_000.0, SETUP)
    assert found.saturation_per_s.middle == pytest.approx(2_850.0, rel=0.01)
    assert found.most_per_s == pytest.approx(3_000.0, rel=0.01)
    assert found.stable
    assert found.in_time
    assert found.throughput_per_s == 2_000.0
    assert predict(model(driver_s=11.0), 2_000.0, SETUP).saturation_per_s.middle == 0.0


def test_a_row_waits_for_the_next_batch_and_then_for_its_end() -> None:
    found = predict(model(), 1_500.0, SETUP)
    assert found.batch_s.middle == pytest.approx(5.5)
    assert found.latency_s["p50"] == pytest.approx(5.0 + 5.5, abs=0.2)
    assert found.latency_s["p95"] == pytest.approx(9.5 + 5.5, abs=0.2)
    assert found.lag_s == pytest.approx(5.5)


def test_between_the_two_rates_batches_grow_until_they_follow_each_other() -> None:
    found = predict(model(), 2_900.0, SETUP)
    assert found.stable
    assert not found.in_time
    assert found.period_s == pytest.approx(found.batch_s.middle, rel=0.05)
    assert found.batch_s.middle > 10.0


def test_too_much_is_said_to_have_no_end() -> None:
    found = predict(model(), 4_000.0, SETUP)
    assert not found.stable
    assert found.throughput_per_s == pytest.approx(3_000.0, rel=0.01)
    assert math.isinf(found.latency_s["p95"])
    assert math.isinf(found.lag_s)


def test_rows_that_seem_to_cost_nothing_are_no_endless_search() -> None:
    free = model(stage(row_s=0.0, task_s=0.1))
    assert predict(free, 2_000.0, SETUP).stable


def test_a_bound_on_rows_caps_the_rate_while_batches_look_healthy() -> None:
    found = predict(model(), 2_000.0, replace(SETUP, rows_bound=10_000))
    assert not found.stable
    assert found.throughput_per_s == pytest.approx(1_000.0)


def test_a_backlog_is_worked_off_batch_by_batch() -> None:
    # 1,000 rows/s, half a second and a third of a millisecond a row: 30,000 rows wait, one batch of 10.5 s takes them
    # all and leaves 10,500, which is little more than always.
    assert catch_up_s(model(), 1_000.0, SETUP, 20_000.0) == pytest.approx(10.2, abs=0.1)
    # At most 15,000 a trigger of 10 s: 5,000 fewer wait after each.
    bound = replace(SETUP, rows_bound=15_000)
    assert catch_up_s(model(), 1_000.0, bound, 20_000.0) == pytest.approx(38.0, abs=0.1)
    assert catch_up_s(model(), 1_000.0, bound, 120_000.0) == pytest.approx(238.0, abs=0.1)
    assert catch_up_s(model(), 1_000.0, SETUP, 0.0) == 0.0
    assert math.isinf(catch_up_s(model(), 1_600.0, bound, 1_000.0))


def test_a_backlog_that_dwindles_slowly_takes_its_time() -> None:
    """At 2,900 of 3,000 rows/s each batch leaves almost as much as it took; 43,500 rows always wait in the end."""
    waiting, spent_s = 1_000_000.0 + 29_000.0, 0.0
    while waiting > 1.1 * 43_500.0:
        took_s = 0.5 + waiting / 3_000.0
        spent_s, waiting = spent_s + took_s, 2_900.0 * took_s
    assert catch_up_s(model(), 2_900.0, SETUP, 1_000_000.0) == pytest.approx(spent_s, rel=0.01)


def test_what_was_never_seen_is_said() -> None:
    blind = model(replace(stage(), cost=TaskCost(0.0, 0.001)))
    assert predict(blind, 1_000.0, SETUP).unknown == ()
    assert "never changed" in predict(blind, 1_000.0, replace(SETUP, executors=6)).unknown[0]
    known = model(replace(stage(), cost=TaskCost(0.0, 0.001, slowing=Slowing(0.2, 0.2), up_to_executors=4.0)))
    assert predict(known, 1_000.0, replace(SETUP, executors=4)).unknown == ()
    assert predict(known, 1_000.0, replace(SETUP, executors=6)).unknown == (
        "count never ran on more than 4 executors: the trend up to there is assumed to continue",
    )
    seen = replace(model(), rows_seen=(1_000.0, 2_000.0))
    assert "far from" in predict(seen, 2_000.0, SETUP).unknown[-1]
