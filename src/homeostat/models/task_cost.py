"""What a task costs: so much each, per row and per updated key, and what the number of executors does to either."""

from __future__ import annotations

import math
from collections.abc import Iterable
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
_ROUNDS, _TRIAL_ROUNDS = 6, 2
# Tried on each part of a task, then closer and closer to the best.
_EXPONENTS, _CLOSER = (0.25, 0.5, 0.75, 1.0), (0.125, 0.0625, 0.03125)
_OUTLIER = 2.5
_USUAL_TASK_S = 0.02
# What keys must vary by, over their mean, to be told from what every task costs.
_LEAST_VARIATION = 0.5


@dataclass(frozen=True, slots=True)
class Samples:
    """Columns with one entry per measurement of a component's tasks: a task, or the mean task of a batch.

    `weight` is how many tasks it speaks for, `executors` how many were `busy` with them.
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


def busy(executors: float, tasks: float, slots: float) -> float:
    """How many executors have a task at the same time: the others take nothing from it."""
    return min(executors, max(1.0, tasks / slots))


@dataclass(frozen=True, slots=True)
class Slowing:
    """What other busy executors do to a task: with k times as many it takes k^starting times as long to start, and
    k^taking times as long to take its rows.

    0 where that part does not mind how many run beside it (it waits), towards 1 where they share what there is (it
    burns CPU). A task that waits for each of its rows may still burn CPU to start.
    """

    starting: float
    taking: float


NO_SLOWING = Slowing(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class TaskCost:
    """A task takes task_s + row_s · rows + key_s · updated keys with `at_executors` busy; others slow it by `slowing`.

    `slowing` is None until a change of the executors has shown it; `up_to_executors` were seen then. `error` is the
    relative standard error of a typical task's predicted time. Not `separable`: rows hardly varied, so only the sum of
    the parts is known.
    """

    task_s: float
    row_s: float
    key_s: float = 0.0
    at_executors: float = 1.0
    slowing: Slowing | None = None
    error: float = 0.0
    separable: bool = True
    up_to_executors: float = math.nan

    def seconds(self, rows: Array, keys: float | Array, executors: float | Array) -> Array:
        """What is not known of other executors is left out."""
        relative = executors / self.at_executors
        slowing = self.slowing or NO_SLOWING
        taking = (self.row_s * rows + self.key_s * keys) * relative**slowing.taking
        return np.asarray(self.task_s * relative**slowing.starting + taking)


def fit(samples: Samples) -> TaskCost | None:
    """The cost that explains the measurements best, in relative terms; None if there are none."""
    known = np.isfinite(samples.rows) & np.isfinite(samples.seconds) & (samples.seconds > 0) & (samples.executors > 0)
    samples = samples.where(known)
    if not len(samples):
        return None
    if not np.isfinite(samples.keys).all():
        samples = replace(samples, keys=np.zeros(len(samples)))
    told = _scaling_told(samples)
    cost = _fitted(samples, _slowing(samples) if told else None, _ROUNDS)
    most = float(samples.executors.max()) if told else math.nan
    return replace(cost, error=_standard_error(samples, cost), up_to_executors=most)


def residuals(cost: TaskCost, rows: Array, keys: Array, seconds: Array, executors: float) -> Array:
    """ln(measured ÷ predicted); NaN where something is unknown."""
    expected = cost.seconds(rows, keys, executors)
    good = (seconds > 0) & (expected > 0)
    found = np.full(len(rows), math.nan)
    found[good] = np.log(seconds[good] / expected[good])
    return found


def _fitted(samples: Samples, slowing: Slowing | None, rounds: int) -> TaskCost:
    """With the executors there were last, and slowed that much by others."""
    at_executors = float(samples.executors[-1])
    relative, by = samples.executors / at_executors, slowing or NO_SLOWING
    starting, taking = relative**by.starting, relative**by.taking
    rows, keys, seconds = samples.rows * taking, samples.keys * taking, samples.seconds

    def cost(task_s: float, row_s: float, key_s: float = 0.0, *, separable: bool = True) -> TaskCost:
        return TaskCost(task_s, row_s, key_s, at_executors, slowing, separable=separable)

    if not _with_rows(samples):
        return cost(median(seconds / starting), 0.0)
    if not _rows_vary(samples):
        whole_s = median(seconds / taking)
        task_s = min(_USUAL_TASK_S, 0.5 * whole_s)
        return cost(task_s, (whole_s - task_s) / median(samples.rows), separable=False)
    if samples.keys.max() > 0 and np.ptp(samples.keys) < _LEAST_VARIATION * samples.keys.mean():
        # As many keys every time cannot be told from what a task costs anyway; that is little, and keys cost much.
        task_s = min(_USUAL_TASK_S, 0.5 * float((seconds / starting).min()))
        found = _not_negative(np.column_stack([rows, keys]), seconds - task_s * starting, samples.weight, rounds)
        return cost(task_s, float(found[0]), float(found[1]), separable=False)
    columns = [starting, rows]
    if samples.keys.max() > 0 and abs(float(np.corrcoef(samples.rows, samples.keys)[0, 1])) < _MOST_CORRELATION:
        columns.append(keys)
    found = _not_negative(np.column_stack(columns), seconds, samples.weight, rounds)
    return cost(*map(float, found))


def _with_rows(samples: Samples) -> bool:
    """Not just now and then."""
    return quantile(np.sort(samples.rows), 0.95) > 0


def _rows_vary(samples: Samples) -> bool:
    ordered = np.sort(samples.rows)
    return _with_rows(samples) and quantile(ordered, 0.95) >= _LEAST_RANGE * quantile(ordered, 0.05)


def _not_negative(columns: Array, values: Array, weight: Array, rounds: int) -> Array:
    """Coefficients of at least 0 with the smallest relative error, outliers having little say."""
    doubt = np.sqrt(weight) / values
    found = np.zeros(columns.shape[1])
    for _ in range(rounds):
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


def _standard_error(samples: Samples, cost: TaskCost) -> float:
    """Of the typical predicted time, from the spread between batches: tasks of one batch are not independent."""
    batches = samples.weight > 1
    off = _off(samples, cost)
    chosen = off[batches] if batches.sum() >= _LEAST_SEEN else off
    return spread(chosen) / math.sqrt(len(chosen)) if len(chosen) > 1 else 0.1


def _off(samples: Samples, cost: TaskCost) -> Array:
    """ln(measured ÷ predicted)."""
    expected = cost.seconds(samples.rows, samples.keys, samples.executors)
    return np.asarray(np.log(samples.seconds / np.maximum(expected, 1e-12)))


def _scaling_told(samples: Samples) -> bool:
    """Whether the number of executors varied, and not just together with the rows of a task."""
    counts, seen = np.unique(samples.executors, return_counts=True)
    often = counts[seen >= _LEAST_SEEN]
    if len(often) < 2 or float(often.max() / often.min()) < _LEAST_CHANGE:
        return False
    ranges = np.array([np.percentile(samples.rows[samples.executors == count], (5, 95)) for count in often])
    alike = bool(ranges[:, 0].max() <= _LEAST_RANGE * ranges[:, 1].min())
    return alike or bool((ranges[:, 1] >= _LEAST_RANGE * ranges[:, 0]).any())


def _slowing(samples: Samples) -> Slowing:
    """That which explains the measurements best. Where rows hardly vary, the parts of a task cannot be told apart."""
    tried: dict[Slowing, float] = {}

    def best(candidates: Iterable[Slowing]) -> Slowing:
        for slowing in candidates:
            if slowing not in tried:
                off = np.abs(_off(samples, _fitted(samples, slowing, _TRIAL_ROUNDS)))
                tried[slowing] = float(off @ samples.weight)
        return min(tried, key=lambda slowing: tried[slowing])

    parts = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)) if _rows_vary(samples) else ((1.0, 1.0),)
    found = best([NO_SLOWING, *(Slowing(a * part, b * part) for a, b in parts for part in _EXPONENTS)])
    for step in _CLOSER:
        found = best(
            Slowing(*np.clip((found.starting + a * by, found.taking + b * by), 0.0, 1.0).tolist())
            for a, b in parts
            for by in (-step, step)
        )
    return found
