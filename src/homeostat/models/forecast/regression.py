"""Predicts how far the load will deviate from its usual course, by least squares for each horizon."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from homeostat.core.observation import NAN, Array, IntArray
from homeostat.core.stats import filled
from homeostat.models.forecast.series import Series, knots

REGRESSION = "regression"

# Weight of the newest day and of the newest week in the usual course: larger weights follow a change sooner, smaller
# ones resist odd days. Choices.
_DAY_WEIGHT, _WEEK_WEIGHT = 0.3, 0.5
# Share of the mean load that is added before taking logarithms, which exaggerate changes near 0. A choice.
_FLOOR_SHARE = 0.1
# Windows over which recent deviations are averaged, in days: 10 min, 1 h, 6 h and 1 d. A choice.
_WINDOWS = (1 / 144, 1 / 24, 1 / 4, 1.0)
_HOUR = _WINDOWS[1]
# Half-width of the smoothing of the usual course, in days: wider removes more noise and more of sharp peaks. A choice.
_SMOOTHING_HALF_WIDTH = 1 / 48
# No forecast exceeds this many times the largest load observed: a guard against extrapolation. A choice.
_MOST_OVER_OBSERVED = 3.0
# Ridge penalty relative to each feature's own sum of squares: more shrinks useless features, and useful ones too.
# A choice.
_RIDGE = 0.01
# Horizons that are fitted are this factor apart; weights between them are interpolated. A choice.
_HORIZON_GROWTH = 1.4
# With fewer rows nothing is fitted: there are up to eleven features. A choice.
_LEAST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Regression:
    """Predicts, in logarithms, the deviation from the usual course at the target from the deviations at the origin.

    The sums for the least squares grow from origin to origin, so one pass serves all of them. Rows far from the first
    fit count less, which makes the result nearly a median.
    """

    name: str = REGRESSION

    def ahead(self, history: Series, steps: int) -> Array:
        return np.asarray(self.rolled(history, [len(history.values)], steps)[0])

    def rolled(self, history: Series, origins: Sequence[int], steps: int) -> Array:
        floor = _FLOOR_SHARE * _mean(history.values[: min(origins)])
        if floor <= 0 or not history.day:
            return np.full((len(origins), steps), NAN)
        features = _Features(np.log(history.values + floor), history.day, history.week, steps)
        fitted_at = knots(steps, _HORIZON_GROWTH)
        fitted = np.stack([_fit(features, each, origins) for each in fitted_at])
        forecasts = np.empty((len(origins), steps))
        ahead = np.arange(1, steps + 1)
        for number, origin in enumerate(origins):
            weights = np.stack([np.interp(ahead, fitted_at, column) for column in fitted[:, number].T], axis=1)
            targets = origin - 1 + ahead
            line = features.usual(targets, ahead) + (features.of(targets, ahead) * weights).sum(axis=1)
            forecasts[number] = np.maximum(0.0, np.exp(np.minimum(line, features.highest[origin - 1])) - floor)
        return forecasts


def _mean(values: Array) -> float:
    known_values = values[np.isfinite(values)]
    return float(known_values.mean()) if len(known_values) else 0.0


def _fit(features: _Features, ahead: int, origins: Sequence[int]) -> Array:
    """Weights of the features at each origin, from the targets before it."""
    targets = np.arange(ahead, max(origins))
    x = features.of(targets, np.full(len(targets), ahead))
    y = features.logs[targets] - features.usual(targets, np.full(len(targets), ahead))
    complete = np.isfinite(y) & np.isfinite(x).all(axis=1)
    targets, x, y = targets[complete], x[complete], y[complete]
    before = targets < min(origins)
    rows = np.array([before.sum()])
    first = _solve((x[before].T @ x[before])[np.newaxis], (x[before].T @ y[before])[np.newaxis], rows)[0]
    deviations = np.abs(y - x @ first)
    usual = max(float(np.median(deviations[before])) if before.any() else 0.0, 1e-6)
    weighted_x = x / np.maximum(1.0, deviations / usual)[:, np.newaxis]
    order, ends = np.argsort(origins, kind="stable"), np.searchsorted(targets, origins)
    parts = [slice(start, end) for start, end in pairwise([0, *ends[order].tolist()])]
    squares = np.cumsum([weighted_x[part].T @ x[part] for part in parts], axis=0)
    products = np.cumsum([weighted_x[part].T @ y[part] for part in parts], axis=0)
    weights = np.empty((len(origins), x.shape[1]))
    weights[order] = _solve(squares, products, ends[order])
    return weights


def _solve(squares: Array, products: Array, rows: IntArray) -> Array:
    """Ridge regressions: features that add nothing get little weight. With too few rows all weights are 0."""
    weights, enough = np.zeros_like(products), rows >= _LEAST_ROWS
    ridge = _RIDGE * np.diagonal(squares, axis1=1, axis2=2) + 1e-6 * rows[:, np.newaxis]
    ridged = squares + ridge[:, :, np.newaxis] * np.eye(squares.shape[1])
    weights[enough] = np.linalg.solve(ridged[enough], products[enough, :, np.newaxis])[:, :, 0]
    return weights


class _Features:
    """The features of a target that are known at its origin, each relative to the usual course at the target."""

    def __init__(self, logs: Array, day: int, week: int, steps: int) -> None:
        self.logs = logs
        self.highest = np.fmax.accumulate(logs) + np.log(_MOST_OVER_OBSERVED)
        self._day, self._week = day, week
        self._width = int(day * _SMOOTHING_HALF_WIDTH)
        extended_logs = np.concatenate([logs, np.full(steps, NAN)])
        self._raw = extended_logs
        self._daily = _seasonal_mean(_smooth(extended_logs, self._width), day, _DAY_WEIGHT)
        self._sharp = _seasonal_mean(extended_logs, day, _DAY_WEIGHT)
        self._weekly = _seasonal_mean(_smooth(extended_logs, self._width), week, _WEEK_WEIGHT) if week else self._daily
        deviations = extended_logs - self._daily
        self._off = _fill([_recent_mean(deviations, max(1, round(day * share))) for share in _WINDOWS])
        hour = max(1, round(day * _HOUR))
        self._course = _recent_mean(self._daily, hour)
        self._weekly_off = np.nan_to_num(_recent_mean(self._weekly - self._daily, hour))

    def usual(self, targets: IntArray, ahead: IntArray) -> Array:
        return self._at(self._daily, targets - self._whole(ahead + self._width, self._day))

    def of(self, targets: IntArray, ahead: IntArray) -> Array:
        origins = targets - ahead
        usual = self.usual(targets, ahead)
        columns = [np.ones(len(targets)), *(self._at(deviations, origins) for deviations in self._off)]
        columns.append(filled(self._at(self._course, origins) - usual, 0.0))
        yesterday = targets - self._whole(ahead, self._day)
        columns.append(filled(self._at(self._sharp, yesterday) - usual, 0.0))
        columns.append(filled(self._at(self._raw, yesterday - self._day) - usual, 0.0))
        if self._week:
            weekly = self._at(self._weekly, targets - self._whole(ahead + self._width, self._week))
            columns.append(filled(weekly - usual, 0.0))
            columns.append(self._at(self._weekly_off, origins))
        return np.stack(columns, axis=1)

    @staticmethod
    def _whole(ahead: IntArray, season: int) -> IntArray:
        """How many steps to go back, in whole seasons, to a value that is known at the origin."""
        return np.asarray((ahead - 1) // season * season, dtype=np.int64)

    @staticmethod
    def _at(values: Array, places: IntArray) -> Array:
        return np.where(places >= 0, values[np.maximum(places, 0)], NAN)


def _fill(windows: list[Array]) -> list[Array]:
    """Where the last minutes are unknown, use the last hours."""
    windows_filled = [np.nan_to_num(windows[-1])]
    for window in reversed(windows[:-1]):
        windows_filled.append(np.where(np.isfinite(window), window, windows_filled[-1]))
    return windows_filled[::-1]


def _seasonal_mean(values: Array, season: int, weight: float) -> Array:
    """For each place the mean of the same place in earlier seasons; newer ones count more."""
    rows = -(-len(values) // season)
    lines = np.concatenate([values, np.full(rows * season - len(values), NAN)]).reshape(rows, season)
    means = np.empty_like(lines)
    usual, counts = np.zeros(season), np.zeros(season)
    for number, line in enumerate(lines):
        means[number] = np.where(counts > 0, usual, NAN)
        is_known = np.isfinite(line)
        counts += is_known
        usual += np.where(is_known, np.maximum(weight, 1.0 / np.maximum(counts, 1.0)) * (line - usual), 0.0)
    return means.reshape(-1)[: len(values)]


def _smooth(values: Array, width: int) -> Array:
    """Mean over `width` places on each side."""
    if not width:
        return values
    padded_values = np.concatenate([values, np.full(width, NAN)])
    return _recent_mean(padded_values, 2 * width + 1)[width:]


def _recent_mean(values: Array, count: int) -> Array:
    """At each place, the mean of the known values among the latest `count`."""
    is_known = np.isfinite(values)
    totals = np.concatenate([[0.0], np.cumsum(np.where(is_known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(is_known)])
    start = np.maximum(0, np.arange(1, len(values) + 1) - count)
    number = counts[1:] - counts[start]
    means = np.full(len(values), NAN)
    np.divide(totals[1:] - totals[start], number, out=means, where=number > 0)
    return means
