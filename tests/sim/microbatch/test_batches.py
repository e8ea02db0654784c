"""A running batch: its tasks on free slots, lost executors, and a sink that is held up."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pytest

from homeostat.sim.microbatch.batches import Batch, Stage
from homeostat.sim.microbatch.stages import Routing, busy_executors, work
from homeostat.sim.microbatch.task_scheduling import Slot
from homeostat.sim.scenario.spec import ComponentSpec

SPEC = ComponentSpec("count", parallelism=4, rate_per_s=100.0, task_s=0.0)


def free_slots(busy: Mapping[int, list[float]], earliest_s: float) -> list[Slot]:
    """Two executors with one slot each."""
    return [Slot(executor, max([earliest_s, *busy.get(executor, [])])) for executor in (0, 1)]


def batch(*, is_sink: bool = True) -> Batch:
    """Four tasks of 1 s: two waves."""
    tasks = work(SPEC, 400, Routing(4), busy_executors(2, 4, 1))
    stage = Stage(SPEC, tasks, started_s=0.0, wait_until_s=0.0, homes=None, is_sink=is_sink)
    running = Batch(1, {"lines": 400}, {"count": 400}, started_s=0.0, driver_s=0.5, slowness=1.0)
    running.stages.append(stage)
    return running


def test_tasks_run_in_waves() -> None:
    running = batch()
    assert running.plan(0.0, free_slots) == pytest.approx(2.0)
    assert np.bincount(running.stages[-1].placement.executor).tolist() == [2, 2]


def test_a_lost_executor_repeats_its_finished_tasks_unless_they_are_in_the_sink() -> None:
    ends_s = []
    for is_sink in (True, False):
        running = batch(is_sink=is_sink)
        running.plan(0.0, free_slots)
        running.lose(1, 1.5)
        ends_s.append(running.plan(1.5, lambda busy, at_s: free_slots(busy, at_s)[:1]))
    assert ends_s == [pytest.approx(3.0), pytest.approx(4.0)]


def test_a_sink_that_is_held_up_ends_that_much_later() -> None:
    running = batch()
    running.plan(0.0, free_slots)
    assert running.freeze(0.5, 10.5) == pytest.approx(12.0)


def test_the_phases_add_up_to_the_batch() -> None:
    running = batch()
    running.added_s = 3.0
    assert sum(running.phases_s(3.2).values()) == pytest.approx(3.2)
