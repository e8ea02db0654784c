"""The cost of a task: a fixed part, a part per row and per updated key, and how other executors slow it down."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, partial
from itertools import chain, combinations

import numpy as np
from numpy.typing import NDArray

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.observation import Array
from homeostat.core.stats import median, numpy_quantile, quantile, spread
from homeostat.models.trial_fits import MAD_TO_SIGMA, OUTLIER_SIGMAS, Trials

# Rows per task (p95 ÷ p5) must vary this much before the cost of a row is separated from that of a task. A smaller
# range separates them earlier, but noise then decides the split. A choice.
_LEAST_ROW_RANGE = 1.25
# The quantiles that the range of rows is measured between; wider ones would let single outliers set it. A choice.
_ROW_RANGE_QUANTILES = (0.05, 0.95)
# Above this correlation between rows and keys, least squares cannot separate their costs. A choice.
_MOST_CORRELATION = 0.97
# The number of executors must have changed by this factor before its effect is fitted. A choice.
_LEAST_EXECUTOR_RANGE = 1.25
# Passes of reweighted least squares: for the result, and for each exponent that is only tried. More passes converge
# further, and each costs a solve. Choices.
_FIT_ROUNDS, _TRIAL_ROUNDS = 6, 2
# Exponents tried for each part of a task, then ever smaller steps around the best: to within 1/32. A choice.
_EXPONENTS, _REFINING_STEPS = (0.25, 0.5, 0.75, 1.0), (0.125, 0.0625, 0.03125)
# The fixed cost of a task where rows never varied, and the largest share of the task it may be. Choices.
_ASSUMED_TASK_S, _ASSUMED_TASK_SHARE = 0.02, 0.5
# Keys per task must vary by this share of their mean before their cost is separated from that of a task. A choice.
_LEAST_KEY_VARIATION = 0.5
# The relative error assumed for a cost that was fitted to a single measurement. A choice.
_ASSUMED_ERROR = 0.1


@dataclass(frozen=True)
class Samples:
    """Columns with one entry per measurement of a component's tasks: a task, or the mean task of a batch.

    `weight` is the number of tasks an entry stands for, `executors` how many executors were `busy` with them.
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

    @cached_property
    def with_rows(self) -> bool:
        """Whether most tasks have rows."""
        return quantile(self._sorted_rows, _ROW_RANGE_QUANTILES[1]) > 0

    @cached_property
    def rows_vary(self) -> bool:
        low, high = (quantile(self._sorted_rows, share) for share in _ROW_RANGE_QUANTILES)
        return self.with_rows and high >= _LEAST_ROW_RANGE * low

    @cached_property
    def _sorted_rows(self) -> Array:
        return np.sort(self.rows)

    @cached_property
    def executor_counts(self) -> tuple[Array, NDArray[np.intp]]:
        """The different numbers of executors, and which of them each entry has."""
        return np.unique(self.executors, return_inverse=True)

    @cached_property
    def most_keys(self) -> float:
        return float(self.keys.max())

    @cached_property
    def keys_constant(self) -> bool:
        return self.most_keys > 0 and bool(np.ptp(self.keys) < _LEAST_KEY_VARIATION * self.keys.mean())

    @cached_property
    def keys_separable(self) -> bool:
        """Whether least squares can tell the cost of keys from that of rows."""
        return self.most_keys > 0 and abs(float(np.corrcoef(self.rows, self.keys)[0, 1])) < _MOST_CORRELATION


def busy(executors: float, tasks: float, slots: float) -> float:
    """Return how many executors run a task at the same time. Idle executors do not slow tasks down."""
    return min(executors, max(1.0, tasks / slots))


@dataclass(frozen=True, slots=True)
class Slowing:
    """How busy executors slow a task. With k times as many, its start takes k^starting times as long, and its rows take
    k^taking times as long.

    An exponent is 0 for work that waits, and near 1 for work on a CPU that all executors share. A task that waits for
    each row may still need the CPU to start.
    """

    starting: float
    taking: float


NO_SLOWING = Slowing(0.0, 0.0)


@dataclass(frozen=True, slots=True)
class TaskCost:
    """A task takes task_s + row_s · rows + key_s · updated keys with `at_executors` busy executors.

    `slowing` is the effect of more busy executors; None until their number has changed. `up_to_executors` is the
    largest number observed; NaN until then.
    `error` is the relative standard error of a typical task's predicted time. If rows hardly varied, the cost is not
    `separable`: only the sum of its parts is known.
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
        """Predict the seconds of tasks. An unknown slowing counts as none."""
        relative = executors / self.at_executors
        slowing = self.slowing or NO_SLOWING
        taking = self.row_s * rows
        if self.key_s > 0:
            taking = taking + self.key_s * keys
        if slowing.taking != 0:
            taking = taking * relative**slowing.taking
        starting = self.task_s * relative**slowing.starting if slowing.starting != 0 else self.task_s
        return np.asarray(starting + taking)


def fit(samples: Samples) -> TaskCost | None:
    """Return the cost with the smallest relative error; None if there are no measurements."""
    samples = _usable(samples)
    if not len(samples):
        return None
    scaling_visible = _scaling_visible(samples)
    cost = _fit(samples, _slowing(samples) if scaling_visible else None, _FIT_ROUNDS)
    most_executors = float(samples.executors.max()) if scaling_visible else math.nan
    return replace(cost, error=_standard_error(samples, cost), up_to_executors=most_executors)


def fixed_part_s(samples: Samples) -> float | None:
    """Return the seconds that a task takes regardless of its rows; None if the measurements do not separate that
    part.
    """
    samples = _usable(samples)
    if not len(samples) or not samples.rows_vary or samples.keys_constant:
        return None
    return _fit(samples, _slowing(samples) if _scaling_visible(samples) else None, _FIT_ROUNDS).task_s


def _usable(samples: Samples) -> Samples:
    usable = np.isfinite(samples.rows) & np.isfinite(samples.seconds) & (samples.seconds > 0) & (samples.executors > 0)
    if not usable.all():
        samples = samples.where(usable)
    return samples if np.isfinite(samples.keys).all() else replace(samples, keys=np.zeros(len(samples)))


def residuals(cost: TaskCost, rows: Array, keys: Array, seconds: Array, executors: float) -> Array:
    """Return ln(measured ÷ predicted); NaN where either is unknown."""
    expected = cost.seconds(rows, keys, executors)
    usable = (seconds > 0) & (expected > 0)
    logs = np.full(len(rows), math.nan)
    logs[usable] = np.log(seconds[usable] / expected[usable])
    return logs


def _fit(samples: Samples, slowing: Slowing | None, rounds: int) -> TaskCost:
    """The cost at the latest number of executors, given how much other executors slow a task."""
    at_executors = float(samples.executors[-1])
    relative, by = samples.executors / at_executors, slowing or NO_SLOWING
    starting, taking = relative**by.starting, relative**by.taking
    rows, keys, seconds = samples.rows * taking, samples.keys * taking, samples.seconds

    def cost(task_s: float, row_s: float, key_s: float = 0.0, *, separable: bool = True) -> TaskCost:
        return TaskCost(task_s, row_s, key_s, at_executors, slowing, separable=separable)

    if not samples.with_rows:
        return cost(median(seconds / starting), 0.0)
    if not samples.rows_vary:
        whole_s = median(seconds / taking)
        task_s = min(_ASSUMED_TASK_S, _ASSUMED_TASK_SHARE * whole_s)
        return cost(task_s, (whole_s - task_s) / median(samples.rows), separable=False)
    if samples.keys_constant:
        # A constant number of keys looks like a fixed cost. It is attributed to the keys: they cost far more than a
        # start.
        task_s = min(_ASSUMED_TASK_S, _ASSUMED_TASK_SHARE * float((seconds / starting).min()))
        coefficients = _not_negative(np.column_stack([rows, keys]), seconds - task_s * starting, samples.weight, rounds)
        return cost(task_s, float(coefficients[0]), float(coefficients[1]), separable=False)
    columns = [starting, rows]
    if samples.keys_separable:
        columns.append(keys)
    coefficients = _not_negative(np.column_stack(columns), seconds, samples.weight, rounds)
    return cost(*map(float, coefficients))


def _not_negative(columns: Array, values: Array, weight: Array, rounds: int) -> Array:
    """Non-negative coefficients with the smallest relative error; outliers count less."""
    certainty = np.sqrt(weight) / values
    coefficients = np.zeros(columns.shape[1])
    for _ in range(rounds):
        coefficients = _best_subset(columns * certainty[:, np.newaxis], values * certainty)
        fitted = np.maximum(columns @ coefficients, 1e-3 * values)
        errors = np.abs(values / fitted - 1.0)
        usual_error = max(MAD_TO_SIGMA * median(errors), 1e-6)
        certainty = np.sqrt(weight * np.minimum(1.0, OUTLIER_SIGMAS * usual_error / np.maximum(errors, 1e-12))) / fitted
    return coefficients


def _best_subset(columns: Array, values: Array) -> Array:
    """Non-negative least squares by trying every subset of the columns, of which there are at most three.

    If the solution with all columns is non-negative, no subset can be closer.
    """
    count = columns.shape[1]
    scale = np.maximum(np.abs(columns).max(axis=0), 1e-300)
    scaled_columns = columns / scale
    best_solution, least_error = np.zeros(count), math.inf
    for chosen in map(list, chain.from_iterable(combinations(range(count), size) for size in range(count, 0, -1))):
        part = scaled_columns[:, chosen]
        solution = np.linalg.lstsq(part, values, rcond=None)[0]
        if not (solution >= 0).all():
            continue
        if len(chosen) == count:
            return np.asarray(solution / scale)
        squared_error = float(((part @ solution - values) ** 2).sum())
        if squared_error < least_error:
            best_solution, least_error = np.zeros(count), squared_error
            best_solution[chosen] = solution / scale[chosen]
    return best_solution


def _standard_error(samples: Samples, cost: TaskCost) -> float:
    """Error of the typical predicted time, from the spread between batches: tasks of one batch are not independent."""
    batches = samples.weight > 1
    logs = _log_residuals(samples, cost)
    chosen = logs[batches] if batches.sum() >= LEAST_OBSERVATIONS else logs
    return spread(chosen) / math.sqrt(len(chosen)) if len(chosen) > 1 else _ASSUMED_ERROR


def _log_residuals(samples: Samples, cost: TaskCost) -> Array:
    """ln(measured ÷ predicted)."""
    expected = cost.seconds(samples.rows, samples.keys, samples.executors)
    return np.asarray(np.log(samples.seconds / np.maximum(expected, 1e-12)))


def _scaling_visible(samples: Samples) -> bool:
    """Whether the number of executors varied independently of the rows of a task."""
    times_observed = Counter(samples.executors.tolist())
    frequent_counts = [count for count, times in times_observed.items() if times >= LEAST_OBSERVATIONS]
    if len(frequent_counts) < 2 or max(frequent_counts) / min(frequent_counts) < _LEAST_EXECUTOR_RANGE:
        return False
    rows_by_count = [np.sort(samples.rows[samples.executors == count]) for count in frequent_counts]
    ranges = [[numpy_quantile(rows, share) for share in _ROW_RANGE_QUANTILES] for rows in rows_by_count]
    alike = max(low for low, _ in ranges) <= _LEAST_ROW_RANGE * min(high for _, high in ranges)
    return alike or any(high >= _LEAST_ROW_RANGE * low for low, high in ranges)


def _slowing(samples: Samples) -> Slowing:
    """The slowing that explains the measurements best. If rows hardly vary, both parts get the same exponent."""
    errors: dict[Slowing, float] = {}
    at_once = samples.with_rows and samples.rows_vary
    measure = partial(_errors_at_once if at_once else _errors_one_by_one, samples)

    def best(candidates: Iterable[Slowing]) -> Slowing:
        untried = list(dict.fromkeys(slowing for slowing in candidates if slowing not in errors))
        errors.update(zip(untried, measure(untried), strict=True))
        return min(errors, key=lambda slowing: errors[slowing])

    parts = ((1.0, 1.0), (1.0, 0.0), (0.0, 1.0)) if samples.rows_vary else ((1.0, 1.0),)
    closest = best([NO_SLOWING, *(Slowing(a * part, b * part) for a, b in parts for part in _EXPONENTS)])
    for step in _REFINING_STEPS:
        closest = best(
            Slowing(_from_0_to_1(closest.starting + a * by), _from_0_to_1(closest.taking + b * by))
            for a, b in parts
            for by in (-step, step)
        )
    return closest


def _from_0_to_1(exponent: float) -> float:
    return min(1.0, max(0.0, exponent))


def _errors_one_by_one(samples: Samples, candidates: Sequence[Slowing]) -> list[float]:
    logs = (np.abs(_log_residuals(samples, _fit(samples, each, _TRIAL_ROUNDS))) for each in candidates)
    return [float(each @ samples.weight) for each in logs]


def _errors_at_once(samples: Samples, candidates: Sequence[Slowing]) -> list[float]:
    """The same as `_errors_one_by_one` if rows vary: fits all candidates together."""
    if not candidates:
        return []
    counts, places = samples.executor_counts  # few, so that few powers are computed
    logs = np.log(counts / samples.executors[-1])
    starting = np.exp(np.outer([each.starting for each in candidates], logs))[:, places]
    taking = np.exp(np.outer([each.taking for each in candidates], logs))[:, places]
    parts, given_s = [starting, samples.rows * taking], np.zeros(1)
    if samples.keys_constant:
        shortest_s = (samples.seconds / starting).min(axis=1)
        given_s = np.minimum(_ASSUMED_TASK_S, _ASSUMED_TASK_SHARE * shortest_s)[:, np.newaxis] * starting
        parts = [samples.rows * taking, samples.keys * taking]
    elif samples.keys_separable:
        parts.append(samples.keys * taking)
    trials = Trials(parts, given_s, samples.seconds, samples.weight)
    return [float(each) for each in trials.errors(_TRIAL_ROUNDS)]
