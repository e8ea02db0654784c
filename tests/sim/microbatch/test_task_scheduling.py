"""Tasks on slots: list scheduling, and the wait of tasks for the executor that has their state."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.observation import Array, IntArray
from homeostat.sim.microbatch.task_scheduling import NOWHERE, Placement, Slot, makespan_bounds_s, makespan_s, schedule

WORK = st.lists(st.floats(0.001, 100.0), min_size=1, max_size=60).map(lambda values: np.array(values))


def on(executors: int, slots_each: int = 1, **slot: float) -> list[Slot]:
    return [Slot(number, **slot) for _ in range(slots_each) for number in range(executors)]


def most_at_once(placed: Placement, executor: int) -> int:
    here = placed.executor == executor
    starts, finishes = placed.start_s[here], placed.finish_s[here]
    return max((int(((starts <= t) & (finishes > t)).sum()) for t in starts), default=0)


def homes(*executors: int) -> IntArray:
    return np.array(executors, dtype=np.int64)


@given(WORK, st.integers(1, 12))
def test_the_time_lies_within_the_bounds_of_list_scheduling(work_s: Array, slots: int) -> None:
    taken_s = makespan_s(work_s, slots)

    assert taken_s >= max(work_s.max(), work_s.sum() / slots) * (1 - 1e-9)
    assert taken_s <= (work_s.sum() / slots + work_s.max() * (1 - 1 / slots)) * (1 + 1e-9)
    low_s, high_s = makespan_bounds_s(work_s, slots)
    assert low_s * (1 - 1e-9) <= taken_s <= high_s * (1 + 1e-9)


@given(WORK, st.integers(1, 12))
def test_the_time_is_that_of_the_schedule(work_s: Array, slots: int) -> None:
    assert makespan_s(work_s, slots) == schedule(work_s, [Slot(number) for number in range(slots)]).end_s


@given(WORK, st.integers(1, 12))
def test_a_further_slot_never_makes_a_stage_slower(work_s: Array, slots: int) -> None:
    assert makespan_s(work_s, slots + 1) <= makespan_s(work_s, slots) * (1 + 1e-9)


@given(WORK, st.integers(1, 4), st.integers(1, 3), st.floats(0, 20), st.data())
def test_every_task_runs_once_and_no_slot_runs_two_at_a_time(
    work_s: Array, executors: int, slots_each: int, wait_s: float, data: st.DataObject
) -> None:
    anywhere = st.integers(NOWHERE, executors)  # one more than there are: an executor that is gone
    home = np.array(data.draw(st.lists(anywhere, min_size=len(work_s), max_size=len(work_s))))

    placed = schedule(work_s, on(executors, slots_each), home, wait_s)

    np.testing.assert_allclose(placed.finish_s - placed.start_s, work_s, rtol=1e-9, atol=1e-12)
    assert set(placed.executor.tolist()) <= set(range(executors))
    assert all(most_at_once(placed, executor) <= slots_each for executor in range(executors))
    early = (placed.start_s < wait_s) & (home != NOWHERE) & (home < executors)
    np.testing.assert_array_equal(placed.executor[early], home[early])


def test_tasks_go_in_order_to_the_first_free_slot() -> None:
    placed = schedule(np.array([3.0, 1.0, 1.0, 1.0, 5.0]), on(2))

    assert placed.executor.tolist() == [0, 1, 1, 1, 0]
    assert placed.start_s.tolist() == [0.0, 0.0, 1.0, 2.0, 3.0]
    assert placed.end_s == 8.0


def test_few_tasks_spread_over_many_executors() -> None:
    assert schedule(np.ones(3), on(3, slots_each=4)).executor.tolist() == [0, 1, 2]


def test_twice_the_slots_take_half_the_time_for_many_tasks() -> None:
    work_s = np.random.default_rng(7).lognormal(0.0, 0.3, 4000)

    assert makespan_s(work_s, 20) / makespan_s(work_s, 40) == pytest.approx(2.0, rel=0.02)


def test_state_sticks_while_the_stage_is_shorter_than_the_wait() -> None:
    placed = schedule(np.full(8, 0.3), on(3), homes(*[0] * 8), wait_until_s=3.0)

    assert set(placed.executor.tolist()) == {0}
    assert placed.end_s == pytest.approx(2.4)


def test_state_spreads_at_once_without_a_wait() -> None:
    placed = schedule(np.full(9, 0.3), on(3), homes(*[0] * 9), wait_until_s=0.0)

    assert sorted(placed.executor.tolist()) == [0, 0, 0, 1, 1, 1, 2, 2, 2]
    assert placed.end_s == pytest.approx(0.9)


def test_tasks_go_elsewhere_when_the_wait_is_over() -> None:
    placed = schedule(np.full(6, 2.0), on(2), homes(*[0] * 6), wait_until_s=3.0)

    elsewhere = placed.executor == 1
    assert placed.start_s[elsewhere].tolist() == [3.0, 5.0]
    assert placed.end_s == 8.0


def test_a_task_whose_home_is_gone_does_not_wait() -> None:
    placed = schedule(np.ones(2), on(2), homes(7, 7), wait_until_s=30.0)

    assert placed.start_s.tolist() == [0.0, 0.0]


def test_a_task_that_moved_loads_its_state_first() -> None:
    placed = schedule(np.ones(3), on(1, moved_factor=1.5), homes(0, NOWHERE, 7), wait_until_s=0.0)

    assert (placed.finish_s - placed.start_s).tolist() == [1.0, 1.0, 1.5]


def test_a_slow_executor_gets_fewer_tasks_and_takes_longer_for_each() -> None:
    placed = schedule(np.ones(50), [Slot(0, factor=4.0), Slot(1)])

    assert int((placed.executor == 0).sum()) == 10
    assert set((placed.finish_s - placed.start_s)[placed.executor == 0].tolist()) == {4.0}


def test_a_slot_that_is_free_later_is_used_later() -> None:
    placed = schedule(np.ones(4), [Slot(0), Slot(1, free_s=2.0)])

    assert placed.start_s.tolist() == [0.0, 1.0, 2.0, 2.0]


def test_without_slots_nothing_ends() -> None:
    assert schedule(np.ones(2), []).end_s == float("inf")
    assert schedule(np.ones(2), [], homes(0, 0)).executor.tolist() == [NOWHERE, NOWHERE]
