"""What a task costs: so much each, per row and per updated key, from measured tasks. Robust and never negative.

The first part may grow with each other executor that is busy at the same time, where they share cores.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.microbatch.stages import crowded

# What the rows must vary by, relative to their mean, to tell the cost of a row from that of a task.
LEAST_VARIATION = 0.1
# Above this correlation the cost of a key cannot be told from that of a row.
MOST_CORRELATION = 0.95
USUAL_TASK_S = 0.02
# How much the number of busy executors must have changed to tell what it does.
LEAST_CHANGE = 1.25
SHARES = tuple(step / 8 for step in range(9))
HUBER = 1.345
ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Cost:
    """`separable` is false where rows varied too little: then `task_s` is a usual value and only the sum is known."""

    task_s: float
    row_s: float
    key_s: float = 0.0
    separable: bool = True
    crowding: float = 0.0

    def seconds(self, rows: Array, keys: Array, busy: float | Array) -> Array:
        known = self.task_s * crowded(self.crowding, busy) + self.row_s * rows
        return known if self.key_s == 0 else known + self.key_s * keys


def fit_cost(rows: Array, keys: Array, seconds: Array, busy: Array) -> Cost:
    """Columns with one entry per task; unknown keys are NaN, `busy` is how many executors had one at that time."""
    usable = np.isfinite(rows) & (seconds > 0)
    rows, keys, seconds, busy = rows[usable], keys[usable], seconds[usable], busy[usable]
    if not len(rows):
        return Cost(USUAL_TASK_S, 0.0, 0.0, separable=False)
    mean = float(rows.mean())
    if mean == 0:
        return Cost(robust_mean(seconds), 0.0)
    if float(rows.std()) < LEAST_VARIATION * mean:
        whole_s = robust_mean(seconds)
        task_s = min(USUAL_TASK_S, whole_s / 2)
        return Cost(task_s, (whole_s - task_s) / mean, 0.0, separable=False)
    per_row = [rows, keys] if _tells_apart(rows, keys) else [rows]
    telling = float(busy.max() / busy.min()) >= LEAST_CHANGE and _tells_apart(rows, busy)
    costs = [_with_crowding(crowding, per_row, seconds, busy) for crowding in (SHARES if telling else (0.0,))]
    return min(costs, key=lambda cost: _error(cost, rows, keys, seconds, busy))


def _with_crowding(crowding: float, per_row: list[Array], seconds: Array, busy: Array) -> Cost:
    found = nonnegative(np.column_stack([crowded(crowding, busy), *per_row]), seconds)
    return Cost(float(found[0]), float(found[1]), float(found[2]) if len(found) > 2 else 0.0, crowding=crowding)


def _error(cost: Cost, rows: Array, keys: Array, seconds: Array, busy: Array) -> float:
    expected = np.maximum(cost.seconds(rows, keys, busy), 1e-3 * seconds)
    return float(np.abs(np.log(seconds / expected)).mean())


def _tells_apart(rows: Array, others: Array) -> bool:
    if not np.isfinite(others).all() or float(others.std()) < LEAST_VARIATION * float(others.mean()):
        return False
    return abs(float(np.corrcoef(rows, others)[0, 1])) < MOST_CORRELATION


def robust_mean(values: Array) -> float:
    return float(nonnegative(np.ones((len(values), 1)), values)[0])


def nonnegative(columns: Array, values: Array) -> Array:
    """Coefficients of at least 0 that fit positive values in relative terms, with little say for outliers."""
    scale = columns.mean(axis=0)
    active = scale > 0
    coefficients = np.zeros(columns.shape[1])
    while active.any():
        scaled = columns[:, active] / scale[active]
        found = _reweighted(scaled, values)
        if (found >= 0).all():
            coefficients[active] = found / scale[active]
            break
        active[np.flatnonzero(active)[int(found.argmin())]] = False
    return coefficients


def _reweighted(columns: Array, values: Array) -> Array:
    weights = 1 / values
    found: Array = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        before, found = found, _least_squares(columns * weights[:, None], values * weights)
        if np.allclose(before, found, rtol=1e-6, atol=0):
            break
        fitted = np.maximum(columns @ found, 1e-3 * values)
        off = np.abs(values - fitted) / fitted
        spread = max(1.4826 * float(np.median(off)), 1e-6)
        weights = np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(off, 1e-12))) / fitted
    return found


def _least_squares(columns: Array, values: Array) -> Array:
    found: Array = np.linalg.lstsq(columns, values, rcond=None)[0].astype(np.float64)
    return found
