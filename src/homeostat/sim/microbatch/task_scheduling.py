"""List scheduling of a stage's tasks on the slots of executors, with the locality wait of stateful tasks."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass
from heapq import heapify, heapreplace
from math import inf

import numpy as np

from homeostat.core.observation import Array, IntArray

NOWHERE = -1


@dataclass(frozen=True, slots=True)
class Slot:
    """One slot of an executor, free from `free_s` on.

    Work takes `factor` times as long here, and `moved_factor` times longer again if its state is elsewhere.
    """

    executor: int
    free_s: float = 0.0
    factor: float = 1.0
    moved_factor: float = 1.0


@dataclass(frozen=True, slots=True)
class Placement:
    """Where and when each task runs. Times are infinite for tasks that no slot can take."""

    executor: IntArray
    start_s: Array
    finish_s: Array

    @property
    def end_s(self) -> float:
        return float(self.finish_s.max(initial=0.0))


def schedule(
    work_s: Array, slots: Sequence[Slot], homes: IntArray | None = None, wait_until_s: float = 0.0
) -> Placement:
    """Give each slot the next task in order as soon as it is free.

    `homes` has the executor that holds each task's state, or NOWHERE. Until `wait_until_s` a task runs only on its
    home, if the home has slots, even if other executors are idle. After that a slot first takes the tasks whose home is
    its executor, then any other.
    """
    executor = np.full(len(work_s), NOWHERE, dtype=np.int64)
    start = np.full(len(work_s), inf)
    finish = np.full(len(work_s), inf)
    if slots and len(work_s):
        placement = _plain(work_s, slots) if homes is None else _at_home(work_s, slots, homes, wait_until_s)
        executor[:], start[:], finish[:] = placement
    return Placement(executor, start, finish)


Columns = tuple[list[int], list[float], list[float]]


def _plain(work_s: Array, slots: Sequence[Slot]) -> Columns:
    heap = [(slot.free_s, rank) for rank, slot in enumerate(slots)]
    heapify(heap)
    factors = [slot.factor for slot in slots]
    ranks: list[int] = []
    starts: list[float] = []
    finishes: list[float] = []
    for work in work_s.tolist():
        free_s, rank = heap[0]
        finish_s = free_s + work * factors[rank]
        heapreplace(heap, (finish_s, rank))
        ranks.append(rank)
        starts.append(free_s)
        finishes.append(finish_s)
    return [slots[rank].executor for rank in ranks], starts, finishes


def _at_home(work_s: Array, slots: Sequence[Slot], homes: IntArray, wait_until_s: float) -> Columns:
    work, home = work_s.tolist(), homes.tolist()
    heap = [(slot.free_s, rank) for rank, slot in enumerate(slots)]
    heapify(heap)
    waiting: dict[int, deque[int]] = {slot.executor: deque() for slot in slots}
    homeless: deque[int] = deque()
    for task, executor in enumerate(home):
        waiting.get(executor, homeless).append(task)
    queues = [waiting[slot.executor] for slot in slots]
    everything = deque(range(len(work)))
    executors = [NOWHERE] * len(work)
    starts = [inf] * len(work)
    finishes = [inf] * len(work)
    tasks_left = len(work)
    while tasks_left:
        free_s, rank = heap[0]
        queue = queues[rank] or homeless or (everything if free_s >= wait_until_s else None)
        if queue is None:
            heapreplace(heap, (wait_until_s, rank))
            continue
        task = queue.popleft()
        if executors[task] != NOWHERE:
            continue
        slot = slots[rank]
        is_remote = home[task] not in (NOWHERE, slot.executor)
        finish_s = free_s + work[task] * slot.factor * (slot.moved_factor if is_remote else 1.0)
        executors[task], starts[task], finishes[task] = slot.executor, free_s, finish_s
        heapreplace(heap, (finish_s, rank))
        tasks_left -= 1
    return executors, starts, finishes


def makespan_bounds_s(work_s: Array, slots: int) -> tuple[float, float]:
    """Bounds of the time on this many equal slots, found without scheduling."""
    even_s, longest_s = float(work_s.sum()) / slots, float(work_s.max(initial=0.0))
    return max(even_s, longest_s), even_s + longest_s * (1 - 1 / slots)


def makespan_s(work_s: Array, slots: int) -> float:
    """How long the tasks take on this many equal slots."""
    every_s: list[float] = work_s.tolist()
    free_s = sorted(every_s[:slots])
    for task_s in every_s[slots:]:
        heapreplace(free_s, free_s[0] + task_s)
    return max(free_s, default=0.0)
