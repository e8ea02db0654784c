"""List scheduling of tasks that are burdened by faults: part of their time does not depend on the executor, and the
driver may start them slowly."""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from heapq import heapify, heapreplace
from math import inf

import numpy as np

from homeostat.core.observation import Array, IntArray
from homeostat.sim.microbatch.task_scheduling import NOWHERE, Placement, Slot


def burdened_schedule(
    work_s: Array,
    fixed_s: Array,
    dispatch_s: float,
    slots: Sequence[Slot],
    homes: IntArray | None = None,
    wait_until_s: float = 0.0,
) -> tuple[Placement, Array]:
    """Place tasks as `task_scheduling.schedule` does. Returns where they run, and how long each waited for the driver.

    The driver starts one task at a time and needs `dispatch_s` for each. A free slot waits for the driver. `fixed_s` is
    the same on every executor.
    """
    count = len(work_s)
    executors = np.full(count, NOWHERE, dtype=np.int64)
    starts, finishes, delays = np.full(count, inf), np.full(count, inf), np.zeros(count)
    if not slots or not count:
        return Placement(executors, starts, finishes), delays
    work, fixed = work_s.tolist(), fixed_s.tolist()
    home = [NOWHERE] * count if homes is None else homes.tolist()
    heap = [(slot.free_s, rank) for rank, slot in enumerate(slots)]
    heapify(heap)
    waiting: dict[int, deque[int]] = {slot.executor: deque() for slot in slots}
    homeless: deque[int] = deque()
    for task, executor in enumerate(home):
        waiting.get(executor, homeless).append(task)
    everything = deque(range(count))
    driver_free_s = -inf
    tasks_left = count
    while tasks_left:
        free_s, rank = heap[0]
        slot = slots[rank]
        queue = waiting[slot.executor] or homeless or (everything if free_s >= wait_until_s else None)
        if queue is None:
            heapreplace(heap, (wait_until_s, rank))
            continue
        task = queue.popleft()
        if executors[task] != NOWHERE:
            continue
        driver_free_s = start_s = max(free_s, driver_free_s) + dispatch_s
        moved_factor = slot.moved_factor if home[task] not in (NOWHERE, slot.executor) else 1.0
        finish_s = start_s + work[task] * slot.factor * moved_factor + fixed[task]
        executors[task], starts[task], finishes[task] = slot.executor, start_s, finish_s
        delays[task] = start_s - free_s
        heapreplace(heap, (finish_s, rank))
        tasks_left -= 1
    return Placement(executors, starts, finishes), delays
