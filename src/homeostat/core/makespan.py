"""How long the tasks of a stage take on a number of slots: each starts, in order, on the first free slot."""

from __future__ import annotations

import math
from heapq import heapreplace

import numpy as np

from homeostat.core.observation import Array

# Tasks count as alike up to this ratio of the longest to the mean; whole waves of the mean are then exact enough and
# spare the scheduling. A choice.
_ALIKE_UP_TO = 1.2
# Beyond this many slots, one stage after the other is faster than a step of all stages at a time. A measurement.
_MANY_SLOTS = 200


def makespan_s(seconds: Array, slots: int, factors: tuple[float, ...] = ()) -> float:
    """Return how long tasks take on `slots` slots if each starts, in order, on the first free slot.

    `factors` belong to the first slots: a task takes that many times longer there.

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


def makespans_s(seconds: Array, slots: int, factors: tuple[float, ...]) -> Array:
    """The makespan of each line of tasks."""
    if seconds.shape[1] <= slots and not factors:
        return np.asarray(seconds.max(axis=1))
    if slots > _MANY_SLOTS:
        return np.array([makespan_s(line, slots, factors) for line in seconds])
    slower = np.array([*factors[:slots], *(1.0,) * (slots - len(factors))])
    free_s, lines = np.zeros((len(seconds), slots)), np.arange(len(seconds))
    for tasks_s in seconds.T:
        first = free_s.argmin(axis=1)
        free_s[lines, first] += tasks_s * slower[first]
    return np.asarray(free_s.max(axis=1))


def roughly_s(seconds: Array, slots: int, factors: tuple[float, ...]) -> float:
    """The makespan; for tasks that are nearly alike, whole waves of the mean task."""
    if factors or len(seconds) <= slots:
        return makespan_s(seconds, slots, factors)
    mean_s = float(seconds.mean())
    alike = float(seconds.max()) <= _ALIKE_UP_TO * mean_s
    return math.ceil(len(seconds) / slots) * mean_s if alike else makespan_s(seconds, slots)


def each_roughly_s(seconds: Array, slots: int, factors: tuple[float, ...]) -> list[float]:
    """The same for each line of tasks."""
    if factors or seconds.shape[1] <= slots:
        return [float(each_s) for each_s in makespans_s(seconds, slots, factors)]
    waves, means_s = math.ceil(seconds.shape[1] / slots), seconds.mean(axis=1)
    alike = seconds.max(axis=1) <= _ALIKE_UP_TO * means_s
    return [
        waves * mean_s if is_alike else makespan_s(line, slots)
        for line, mean_s, is_alike in zip(seconds, means_s.tolist(), alike.tolist(), strict=True)
    ]
