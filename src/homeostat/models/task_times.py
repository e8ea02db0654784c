"""How long the mean task of each batch took, and how much of a task's time does not depend on its rows."""

from __future__ import annotations

from functools import partial

import numpy as np

from homeostat.core.configuration import STATE_PARTITIONS
from homeostat.core.evidence_limits import LEAST_KNOWN
from homeostat.core.observation import Array, WorkerSample
from homeostat.core.stats import median, quantile
from homeostat.core.topology import Component
from homeostat.core.view import View
from homeostat.models.task_cost_model import Samples, fixed_part_s

# The largest share of a task's time that may count as fixed. Rows always cost something: a model in which they cost
# nothing would predict unlimited capacity. A choice.
MOST_FIXED_OF_TASK = 0.8

# The fixed cost of a task is fitted to this many batches: more are steadier but mix in older costs. A choice.
_FITTED_BATCHES = 40
# With fewer batches the fixed cost is left at 0, which plans for too much rather than too little. A choice.
_LEAST_BATCHES = 6
# The fixed cost stays below this quantile of the task times; the smallest time may be an outlier. A choice.
_SHORT_TASK_QUANTILE = 0.1


def task_costs(view: View) -> dict[str, float]:
    """Return the seconds that each task of a component takes regardless of its rows; 0 if rows never varied enough.

    Attributing a task's whole time to its rows is the cautious choice: it plans for too much rather than too little.
    """
    return view.once("task costs", _task_costs)


def mean_tasks(view: View, name: str, over: int) -> Array:
    """Return one line per batch: rows, keys and seconds of its mean task, number of tasks, busy executors.

    The time of the mean task is linear in its rows, however skewed the rows are.
    """
    latest = view.window.latest
    counts_keys, slots = keeps_state(view.topology[name]), slots_each(latest.workers) if latest is not None else 1
    flow, part = partial(view.numbers.flow, last=over), partial(view.numbers.part, name, last=over)
    chosen = (flow("epoch") >= 0) & (part("known_share") >= LEAST_KNOWN)
    instances, rows, run_s = part("instances")[chosen], part("rows")[chosen], part("run_s")[chosen]
    measured = instances * part("known_share")[chosen]
    keys = flow("updated_keys")[chosen] / instances if counts_keys else np.zeros(len(instances))
    executors = np.minimum(flow("workers")[chosen], np.maximum(1.0, instances / slots))
    return np.column_stack([rows / measured, keys, run_s / measured, measured, executors])


def slots_each(workers: WorkerSample) -> int:
    """Slots of one executor; 1 if there is no executor."""
    return max(1, round(median(workers.slots))) if len(workers.slots) else 1


def keeps_state(component: Component) -> bool:
    return component.partitions.kind == STATE_PARTITIONS if component.partitions is not None else component.keyed


def columns(lines: Array) -> Samples:
    rows, keys, seconds, weight, executors = lines.T
    return Samples(rows, keys, seconds, executors, weight)


def _task_costs(view: View) -> dict[str, float]:
    return {name: _task_s(mean_tasks(view, name, _FITTED_BATCHES)) for name in view.topology.names}


def _task_s(lines: Array) -> float:
    lines = lines[np.isfinite(lines).all(axis=1) & (lines[:, 0] > 0)]
    if len(lines) < _LEAST_BATCHES:
        return 0.0
    task_s = fixed_part_s(columns(lines))
    if task_s is None:
        return 0.0
    short_s = quantile(np.sort(lines[:, 2]), _SHORT_TASK_QUANTILE)
    return min(task_s, MOST_FIXED_OF_TASK * short_s)
