"""Tasks on which faults weigh: time that no executor shortens, and a driver that hands tasks out slowly."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.sim.microbatch.burdened_scheduling import burdened_schedule
from homeostat.sim.microbatch.task_scheduling import NOWHERE, Slot, schedule

WORK_S = np.array([3.0, 1.0, 2.0, 2.0, 1.0, 4.0])
SLOTS = [Slot(0), Slot(1, factor=2.0), Slot(2, free_s=1.5)]
NOTHING = np.zeros(len(WORK_S))


@pytest.mark.parametrize("homes", [None, np.array([0, 1, 2, 7, 0, 1])])
@pytest.mark.parametrize("wait_until_s", [0.0, 5.0])
def test_without_a_burden_tasks_run_as_they_always_do(homes: np.ndarray | None, wait_until_s: float) -> None:
    plain = schedule(WORK_S, SLOTS, homes, wait_until_s)
    placement, delay_s = burdened_schedule(WORK_S, NOTHING, 0.0, SLOTS, homes, wait_until_s)
    assert placement.executor.tolist() == plain.executor.tolist()
    assert placement.finish_s.tolist() == plain.finish_s.tolist()
    assert not delay_s.any()


def test_fixed_time_does_not_depend_on_the_executor() -> None:
    placement, _ = burdened_schedule(np.array([1.0, 1.0]), np.array([5.0, 5.0]), 0.0, SLOTS[:2])
    assert placement.finish_s.tolist() == [6.0, 7.0]


def test_the_driver_hands_out_one_task_at_a_time() -> None:
    placement, delay_s = burdened_schedule(np.ones(4), np.zeros(4), 2.0, [Slot(0), Slot(1), Slot(2), Slot(3)])
    assert placement.start_s.tolist() == [2.0, 4.0, 6.0, 8.0]
    assert delay_s.tolist() == [2.0, 4.0, 6.0, 8.0]


def test_without_slots_nothing_runs() -> None:
    placement, _ = burdened_schedule(np.ones(2), np.zeros(2), 0.0, [])
    assert placement.executor.tolist() == [NOWHERE, NOWHERE]
    assert np.isinf(placement.finish_s).all()
