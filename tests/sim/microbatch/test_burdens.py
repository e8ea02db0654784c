"""The time that faults add to each task of a stage."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.sim.microbatch.burdens import MAX_FAILURES, Burden, collect_s, driver_delays_s, sink_s, stage_burden
from homeostat.sim.microbatch.disturbances import CALM, Disturbance, TaskBurden
from homeostat.sim.microbatch.stages import Routing, busy_executors, work
from homeostat.sim.random_streams import stream
from homeostat.sim.scenario.spec import ComponentSpec

SPEC = ComponentSpec("count", inputs=("lines",), parallelism=4, rate_per_s=100.0, task_s=0.0)
WORK = work(SPEC, 400, Routing(4), busy_executors(2, 4, 1))


def burden(weight: TaskBurden, rng: np.random.Generator | None = None, **everything: float) -> Burden:
    now = replace(Disturbance(tasks=(("count", weight),)), **everything)  # type: ignore[arg-type]
    columns = stage_burden(SPEC, WORK, 1.0, now, slots=2, executors=2, rng=rng)
    assert columns is not None
    return columns


def test_nothing_weighs_on_a_calm_stage() -> None:
    assert stage_burden(SPEC, WORK, 1.0, CALM, slots=2, executors=2) is None


def test_dearer_rows_and_costly_partitions_are_more_work() -> None:
    assert burden(TaskBurden(row_factor=1.5)).work_s == pytest.approx([0.5] * 4)
    assert burden(TaskBurden(costly=((5, 3.0),))).work_s == pytest.approx([0.0, 2.0, 0.0, 0.0])


def test_a_join_that_matches_more_rows_sends_more() -> None:
    columns = burden(TaskBurden(exploding=((2, 5.0),)))
    assert columns.rows_out_factor.tolist() == [1.0, 1.0, 5.0, 1.0]
    assert columns.work_s[2] == pytest.approx(2.0)


def test_two_tasks_at_once_share_a_heap() -> None:
    columns = burden(TaskBurden(heap_rows=400.0))
    assert columns.heap_use == pytest.approx([0.5] * 4)
    assert columns.gc_s == pytest.approx(0.1 * WORK.seconds)


def test_waiting_is_part_of_the_running_time_and_fetching_is_not() -> None:
    columns = burden(TaskBurden(wait_s=1.0, row_wait_s=0.01, fetch_row_s=0.02, spill_rows=50.0, spill_row_s=0.1))
    assert columns.inner_s == pytest.approx([1.0 + 1.0 + 5.0] * 4)
    assert columns.outer_s == pytest.approx([1.0] * 4)
    assert columns.fixed_s == pytest.approx(columns.inner_s + columns.outer_s)


def test_the_mean_of_random_failures_is_that_without_chance() -> None:
    weight = TaskBurden(failing_share=0.2)
    drawn = [burden(weight, stream(seed, "attempts")).failures.mean() for seed in range(200)]
    assert np.mean(drawn) == pytest.approx(burden(weight).failures.mean(), abs=0.05)


def test_the_last_allowed_failure_is_fatal() -> None:
    rng = stream(1, "attempts")
    assert burden(TaskBurden(poisoned=((1, MAX_FAILURES - 1),)), rng).fatal is None
    assert burden(TaskBurden(poisoned=((1, MAX_FAILURES),)), rng).fatal == 1


def test_small_files_are_listed_by_the_driver_and_opened_by_tasks() -> None:
    weight = TaskBurden(file_rows=10.0, file_s=0.1)
    assert burden(weight).files == 40
    assert burden(weight).wait_s == pytest.approx([1.0] * 4)
    now = Disturbance(tasks=(("lines", weight),), planning_s=3.0)
    assert driver_delays_s(now, 0.5, {"lines": 400}) == {"latestOffset": pytest.approx(1.0), "queryPlanning": 3.0}
    assert driver_delays_s(CALM, 0.5, {"lines": 400}) == {}


def test_the_sink_and_the_driver_take_time_for_each_row() -> None:
    now = Disturbance(sink_s=2.0, sink_row_s=0.01, collect_row_s=0.02)
    assert (sink_s(now, 100.0), collect_s(now, 100.0)) == (3.0, 2.0)
    assert burden(TaskBurden(), collect_row_s=0.01).serialise_s == pytest.approx([0.2] * 4)
