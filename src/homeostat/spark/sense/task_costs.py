"""What the tasks of a component spent their time on, as columns. Pure functions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields
from operator import attrgetter

import numpy as np

from homeostat.core.observation import NAN, Array, TaskCosts
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.task_answers import TaskCost

_COSTS = tuple(each.name for each in fields(TaskCost))
_costs_of = attrgetter(*_COSTS)
# For several runs, the larger value counts: they used the memory one after the other.
_LARGEST = frozenset({"peak_memory_bytes", "locality"})


def task_costs(runs: Sequence[StageRun], size: int) -> TaskCosts:
    """One component in one batch, with one entry for each of `size` partitions. The costs of several runs are added."""
    table = np.full((len(runs), len(_COSTS) + 2, size), NAN)
    attempts, failed_s = table[:, -2], table[:, -1]
    for line, run in enumerate(runs):
        tasks = [task for task in run.tasks if task.index < run.partitions]
        if tasks:
            places = [task.index for task in tasks]
            table[line, : len(_COSTS), places] = [_costs_of(task.cost) for task in tasks]
        for place, count in run.attempts.items():
            if place < run.partitions:
                attempts[line, place], failed_s[line, place] = count, 0.0
        for failure in run.failures:
            if failure.index < run.partitions:
                failed_s[line, failure.index] += failure.seconds
    names = (*_COSTS, "attempts", "failed_s")
    return TaskCosts(**{name: _together(name, table[:, number]) for number, name in enumerate(names)})


def _together(name: str, table: Array) -> Array:
    """Entry by entry. An entry is NaN only if it is NaN in all runs."""
    finite = np.isfinite(table)
    runs = finite.sum(axis=0)
    values = np.where(finite, table, 0.0)
    whole: Array = values.max(axis=0) if name in _LARGEST else values.sum(axis=0)
    if name == "attempts":
        whole = whole - (runs - 1)  # each further run of the same work needs an attempt of its own
    return np.where(runs > 0, whole, NAN)
