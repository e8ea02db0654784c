"""The cost of a task from measured tasks: a fixed part, one per row and one per updated key. Robust, never negative.

If executors share cores, the fixed part may grow with each other executor that is busy at the same time.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.microbatch.stages import crowding_factor

# How much rows must vary, relative to their mean, to separate the cost of a row from that of a task. A smaller value
# fits noise. Choice.
LEAST_VARIATION = 0.1
# Above this correlation the costs of a key and of a row cannot be separated. Choice.
MOST_CORRELATION = 0.95
# The fixed cost of a task if it cannot be measured: the default of a scenario.
USUAL_TASK_S = 0.02
# How many times the number of busy executors must have changed to show its effect. Choice.
LEAST_CHANGE = 1.25
# The values of crowding that are tried.
SHARES = tuple(step / 8 for step in range(9))
# Residuals above this many deviations count less: 95 % as efficient as least squares for normal noise (Huber 1964).
HUBER = 1.345
# The scale of normal noise from its median absolute deviation. Statistics.
MAD_SCALE = 1.4826
# Reweighting settles within a few rounds; this is a limit.
ROUNDS = 30


@dataclass(frozen=True, slots=True)
class Cost:
    """`separable` is false if rows varied too little. Then `task_s` is a usual value, and only the sum is measured."""

    task_s: float
    row_s: float
    key_s: float = 0.0
    separable: bool = True
    crowding: float = 0.0

    def seconds(self, rows: Array, keys: Array, busy: float | Array) -> Array:
        without_keys = self.task_s * crowding_factor(self.crowding, busy) + self.row_s * rows
        return without_keys if self.key_s == 0 else without_keys + self.key_s * keys


def fit_cost(rows: Array, keys: Array, seconds: Array, busy: Array) -> Cost:
    """Columns with one entry per task. Unknown keys are NaN. `busy`: how many executors ran a task at the same time."""
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
    busy_varied = float(busy.max() / busy.min()) >= LEAST_CHANGE and _tells_apart(rows, busy)
    costs = [_with_crowding(crowding, per_row, seconds, busy) for crowding in (SHARES if busy_varied else (0.0,))]
    return min(costs, key=lambda cost: _error(cost, rows, keys, seconds, busy))


def _with_crowding(crowding: float, per_row: list[Array], seconds: Array, busy: Array) -> Cost:
    coefficients = nonnegative(np.column_stack([crowding_factor(crowding, busy), *per_row]), seconds)
    return Cost(
        float(coefficients[0]),
        float(coefficients[1]),
        float(coefficients[2]) if len(coefficients) > 2 else 0.0,
        crowding=crowding,
    )


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
    """Coefficients of at least 0 that fit positive values by relative error, with little weight for outliers."""
    scale = columns.mean(axis=0)
    active = scale > 0
    coefficients = np.zeros(columns.shape[1])
    while active.any():
        scaled = columns[:, active] / scale[active]
        fitted = _reweight(scaled, values)
        if (fitted >= 0).all():
            coefficients[active] = fitted / scale[active]
            break
        active[np.flatnonzero(active)[int(fitted.argmin())]] = False
    return coefficients


def _reweight(columns: Array, values: Array) -> Array:
    weights = 1 / values
    coefficients: Array = np.zeros(columns.shape[1])
    for _ in range(ROUNDS):
        before, coefficients = coefficients, _least_squares(columns * weights[:, None], values * weights)
        if np.allclose(before, coefficients, rtol=1e-6, atol=0):
            break
        fitted = np.maximum(columns @ coefficients, 1e-3 * values)
        off = np.abs(values - fitted) / fitted
        spread = max(MAD_SCALE * float(np.median(off)), 1e-6)
        weights = np.sqrt(np.minimum(1.0, HUBER * spread / np.maximum(off, 1e-12))) / fitted
    return coefficients


def _least_squares(columns: Array, values: Array) -> Array:
    coefficients: Array = np.linalg.lstsq(columns, values, rcond=None)[0].astype(np.float64)
    return coefficients
