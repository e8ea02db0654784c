"""The duration of a stage of tasks on a number of slots."""

from __future__ import annotations

from heapq import heapreplace

from homeostat.core.observation import Array


def makespan_s(seconds: Array, slots: int, factors: tuple[float, ...] = ()) -> float:
    """Return how long tasks take on `slots` slots if each starts, in order, on the first free slot.

    `factors` belong to the first slots: a task takes that many times longer there.

    >>> import numpy as np
    >>> makespan_s(np.array([3.0, 1.0, 1.0, 2.0]), 2)
    4.0
    """
    if not len(seconds):
        return 0.0
    slow = any(factor != 1.0 for factor in factors)
    if len(seconds) <= slots and not slow:
        return float(seconds.max())
    if not slow:
        every_s: list[float] = seconds.tolist()
        free_s = sorted(every_s[:slots])
        for task_s in every_s[slots:]:
            heapreplace(free_s, free_s[0] + task_s)
        return max(free_s)
    every = [*factors[:slots], *(1.0,) * (slots - len(factors))]
    heap = [(0.0, number) for number in range(slots)]
    for task_s in seconds.tolist():
        earliest_s, number = heap[0]
        heapreplace(heap, (earliest_s + task_s * every[number], number))
    return max(heap)[0]
