"""What a task costs: so much each, per row and per updated key, times what the number of executors does to it."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import Array
from homeostat.core.stats import median, quantile, spread

# What the rows of tasks must differ by, largest over smallest, to tell the cost of a row from that of a task.
_LEAST_RANGE = 1.25
# Above this correlation the cost of a key cannot be told from that of a row.
_MOST_CORRELATION = 0.97
# How much the number of executors must have changed, and how often it was seen, to tell what it does.
_LEAST_CHANGE = 1.25
_LEAST_SEEN = 3
_ROUNDS = 6
_OUTLIER = 2.5
_USUAL_TASK_S = 0.02
# What keys must vary by, over their mean, to be told from what every task costs.
_LEAST_VARIATION = 0.5


@dataclass(frozen=True, slots=True)
class Samples:
    """Columns with one entry per measurement of a component's tasks: a task, or the mean task of a batch.

    `weight` is how many tasks it speaks for, `executors` how many there were.
    """

    rows: Array
    keys: Array
    seconds: Array
    executors: Array
    weight: Array

    def __len__(self) -> int:
        return len(self.rows)

    def where(self, chosen: NDArray[np.bool_]) -> Samples:
        columns = (self.rows, self.keys, self.seconds, self.executors, self.weight)
        return Samples(*(column[chosen] for column in columns))


@dataclass(frozen=True, slots=True)
class TaskCost:
    """A task takes (task_s + row_s · rows + key_s · updated keys) · (executors ÷ `at_executors`)^slowing.

    `slowing` is 0 where tasks do not mind how many run beside them (they wait), towards 1 where they share what there
    is (they burn CPU), and NaN until a change of the executors has shown it; `up_to_executors` were seen then. `error`
    is the relative standard error of a typical task's predicted time. Not `separable`: rows hardly varied, so only the
    sum of the parts is known.
    """

    task_s: float
    row_s: float
    key_s: float = 0.0
    at_executors: float = 1.0
    slowing: float = math.nan
    error: float = 0.0
    separable: bool = True
    up_to_executors: float = math.nan

    @property
    def scaling_known(self) -> bool:
        return math.isfinite(self.slowing)

    def seconds(self, rows: Array, keys: float | Array, executors: float) -> Array:
        return (self.task_s + self.row_s * rows + self.key_s * keys) * self.slowed(executors)

    def slowed(self, executors: float) -> float:
        """How many times longer a task takes with so many executors; what is not known is left out."""
        return (executors / self.at_executors) ** self.slowing if self.scaling_known else 1.0


def fit(samples: Samples) -> TaskCost | None:
    """The cost that explains the measurements best, in relative terms; None if there are none."""
    known = np.isfinite(samples.rows) & np.isfinite(samples.seconds) & (samples.seconds > 0) & (samples.executors > 0)
    samples = samples.where(known)
    if not len(samples):
        return None
    at_executors = float(samples.executors[-1])
    cost = _without_scaling(samples, at_executors)
    if not _scaling_told(samples):
        return cost
    slowing = 0.0
    for _ in range(_ROUNDS):
        factor = (samples.executors / at_executors) ** slowing
        cost = _without_scaling(_with_seconds(samples, samples.seconds / factor), at_executors)
        slowing = float(np.clip(_slowing(samples, cost), 0.0, 1.0))
    return replace(cost, slowing=slowing, up_to_executors=float(samples.executors.max()))


def residuals(cost: TaskCost, rows: Array, keys: Array, seconds: Array, executors: float) -> Array:
    """ln(measured ÷ predicted); NaN where something is unknown."""
    expected = cost.seconds(rows, keys, executors)
    good = (seconds > 0) & (expected > 0)
    found = np.full(len(rows), math.nan)
    found[good] = np.log(seconds[good] / expected[good])
    return found


def _with_seconds(samples: Samples, seconds: Array) -> Samples:
    return Samples(samples.rows, samples.keys, seconds, samples.executors, samples.weight)


def _without_scaling(samples: Samples, at_executors: float) -> TaskCost:
    rows, seconds = samples.rows, samples.seconds
    ordered = np.sort(rows)
    low, high = quantile(ordered, 0.05), quantile(ordered, 0.95)
    if high <= 0:
        return TaskCost(median(seconds), 0.0, 0.0, at_executors, error=_standard_error(samples, seconds))
    if high < _LEAST_RANGE * low:
        whole_s = median(seconds)
        task_s = min(_USUAL_TASK_S, 0.5 * whole_s)
        row_s = (whole_s - task_s) / median(rows)
        error = _standard_error(samples, np.full(len(rows), whole_s))
        return TaskCost(task_s, row_s, 0.0, at_executors, error=error, separable=False)
    keys = samples.keys if np.isfinite(samples.keys).all() else np.zeros(len(rows))
    if keys.max() > 0 and np.ptp(keys) < _LEAST_VARIATION * keys.mean():
        return _with_constant_keys(samples, at_executors)
    columns = [np.ones(len(rows)), rows]
    if keys.max() > 0 and abs(float(np.corrcoef(rows, keys)[0, 1])) < _MOST_CORRELATION:
        columns.append(keys)
    found = _not_negative(np.column_stack(columns), seconds, samples.weight)
    error = _standard_error(samples, np.column_stack(columns) @ found)
    key_s = float(found[2]) if len(found) > 2 else 0.0
    return TaskCost(float(found[0]), float(found[1]), key_s, at_executors, error=error)


def _with_constant_keys(samples: Samples, at_executors: float) -> TaskCost:
    """As many keys every time cannot be told from what a task costs anyway; that is little, and keys cost much."""
    task_s = min(_USUAL_TASK_S, 0.5 * float(samples.seconds.min()))
    columns = np.column_stack([samples.rows, samples.keys])
    found = _not_negative(columns, samples.seconds - task_s, samples.weight)
    error = _standard_error(samples, task_s + columns @ found)
    return TaskCost(task_s, float(found[0]), float(found[1]), at_executors, error=error, separable=False)


def _not_negative(columns: Array, values: Array, weight: Array) -> Array:
    """Coefficients of at least 0 with the smallest relative error, outliers having little say."""
    doubt = np.sqrt(weight) / values
    found = np.zeros(columns.shape[1])
    for _ in range(_ROUNDS):
        found = _best_subset(columns * doubt[:, np.newaxis], values * doubt)
        fitted = np.maximum(columns @ found, 1e-3 * values)
        off = np.abs(values / fitted - 1.0)
        usual = max(1.4826 * median(off), 1e-6)
        doubt = np.sqrt(weight * np.minimum(1.0, _OUTLIER * usual / np.maximum(off, 1e-12))) / fitted
    return found


def _best_subset(columns: Array, values: Array) -> Array:
    """The best non-negative least squares solution is the best among those of all subsets of so few columns.

    If all columns together have one, no subset comes closer.
    """
    count = columns.shape[1]
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scaled = columns / scale
    best, least = np.zeros(count), math.inf
    for chosen in map(list, chain.from_iterable(combinations(range(count), size) for size in range(count, 0, -1))):
        part = scaled[:, chosen]
        found = np.linalg.lstsq(part, values, rcond=None)[0]
        wrong = float(((part @ found - values) ** 2).sum())
        if (found >= 0).all() and wrong < least:
            best, least = np.zeros(count), wrong
            best[chosen] = found / scale[chosen]
            if len(chosen) == count:
                break
    return best


def _standard_error(samples: Samples, fitted: Array) -> float:
    """Of the typical predicted time, from the spread between batches: tasks of one batch are not independent."""
    batches = samples.weight > 1
    off = np.log(samples.seconds / np.maximum(fitted, 1e-12))
    chosen = off[batches] if batches.sum() >= _LEAST_SEEN else off
    return spread(chosen) / math.sqrt(len(chosen)) if len(chosen) > 1 else 0.1


def _scaling_told(samples: Samples) -> bool:
    """Whether the number of executors varied, and not just together with the rows of a task."""
    counts, seen = np.unique(samples.executors, return_counts=True)
    often = counts[seen >= _LEAST_SEEN]
    if len(often) < 2 or float(often.max() / often.min()) < _LEAST_CHANGE:
        return False
    ranges = np.array([np.percentile(samples.rows[samples.executors == count], (5, 95)) for count in often])
    alike = bool(ranges[:, 0].max() <= _LEAST_RANGE * ranges[:, 1].min())
    return alike or bool((ranges[:, 1] >= _LEAST_RANGE * ranges[:, 0]).any())


def _slowing(samples: Samples, cost: TaskCost) -> float:
    """The slope of ln(measured ÷ predicted) over ln(executors), between the medians of each number of them."""
    plain = cost.task_s + cost.row_s * samples.rows + cost.key_s * np.nan_to_num(samples.keys)
    off = np.log(samples.seconds / np.maximum(plain, 1e-12))
    counts, seen = np.unique(samples.executors, return_counts=True)
    often = counts[seen >= _LEAST_SEEN]
    levels = np.array([median(off[samples.executors == count]) for count in often])
    logs = np.log(often) - math.log(cost.at_executors)
    middle = logs - logs.mean()
    return float(middle @ (levels - levels.mean()) / (middle @ middle))
