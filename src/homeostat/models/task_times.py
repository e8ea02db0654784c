"""What the mean task of each batch took, over the history; and what a task costs besides its rows."""

from __future__ import annotations

import numpy as np

from homeostat.core.configuration import STATE_PARTITIONS
from homeostat.core.digest import Digest
from homeostat.core.observation import Array, WorkerSample
from homeostat.core.stats import median, quantile
from homeostat.core.topology import Component
from homeostat.core.view import View
from homeostat.models.task_cost import Samples, busy, fit

LEAST_KNOWN = 0.5

_OVER = 40
_LEAST_SEEN = 6
_MOST_OF_A_TASK = 0.8


def task_costs(view: View) -> dict[str, float]:
    """Seconds that each task of a component takes whatever its rows; 0 where rows never varied enough to tell.

    Taking all of a task's time for that of its rows is the cautious side: it plans for too much rather than too little.
    """
    return view.once("task costs", _task_costs)


def mean_tasks(view: View, name: str, over: int) -> Array:
    """A line for each of the latest batches: rows, keys and seconds of its mean task, tasks, busy executors.

    The mean task's time is linear in its rows whatever the skew.
    """
    latest = view.window.latest
    counts_keys, slots = keeps_state(view.topology[name]), slots_each(latest.workers) if latest is not None else 1
    lines = [
        (*_mean_task(d, name, counts_keys), busy(d.workers, d.components[name].instances, slots))
        for d in view.history[-over:]
        if d.epoch >= 0 and name in d.components and d.components[name].known >= LEAST_KNOWN
    ]
    return np.array(lines, dtype=np.float64).reshape(-1, 5)


def slots_each(workers: WorkerSample) -> int:
    """Of an executor; 1 if there is none."""
    return max(1, round(median(workers.slots))) if len(workers.slots) else 1


def keeps_state(component: Component) -> bool:
    return component.partitions.kind == STATE_PARTITIONS if component.partitions is not None else component.keyed


def columns(lines: Array) -> Samples:
    rows, keys, seconds, weight, executors = lines.T
    return Samples(rows, keys, seconds, executors, weight)


def _mean_task(d: Digest, name: str, counts_keys: bool) -> tuple[float, float, float, float]:
    component = d.components[name]
    measured = component.instances * component.known
    keys = d.updated_keys / component.instances if counts_keys else 0.0
    return component.rows / measured, keys, component.run_s / measured, measured


def _task_costs(view: View) -> dict[str, float]:
    return {name: _task_s(mean_tasks(view, name, _OVER)) for name in view.topology.names}


def _task_s(lines: Array) -> float:
    lines = lines[np.isfinite(lines).all(axis=1) & (lines[:, 0] > 0)]
    if len(lines) < _LEAST_SEEN:
        return 0.0
    cost = fit(columns(lines))
    if cost is None or not cost.separable:
        return 0.0
    at_least_s = quantile(np.sort(lines[:, 2]), 0.1)
    return min(cost.task_s, _MOST_OF_A_TASK * at_least_s)
