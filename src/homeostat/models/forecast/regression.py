"""How far the load will be off its usual course, learned by least squares for each horizon apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.observation import NAN, Array, IntArray
from homeostat.models.forecast.series import Series, knots

REGRESSION = "regression"

_CARRIED_DAY, _CARRIED_WEEK = 0.3, 0.5  # how much the newest one counts in the usual course
_FLOOR = 0.1  # of the mean load, added to all of it: a logarithm makes too much of hardly anything
_WINDOWS = (1 / 144, 1 / 24, 1 / 4, 1.0)  # of a day, over which recent deviations are averaged
_HOUR = _WINDOWS[1]
_SMOOTHED = 1 / 48  # of a day, to both sides
_HIGHEST = 3.0  # times what was ever seen; no forecast goes beyond
_RIDGE = 0.01
_GROWTH = 1.4
_LEAST_ROWS = 40


@dataclass(frozen=True, slots=True)
class Regression:
    """In logarithms: the deviation from the usual course at the target, from the deviations known at the origin.

    The sums behind the least squares grow from origin to origin, so that one pass serves all of them. Rows that the
    first fit misses by far count less, which makes it nearly a median.
    """

    name: str = REGRESSION

    def ahead(self, history: Series, steps: int) -> Array:
        return np.asarray(self.rolled(history, [len(history.values)], steps)[0])

    def rolled(self, history: Series, origins: Sequence[int], steps: int) -> Array:
        floor = _FLOOR * _mean(history.values[: min(origins)])
        if floor <= 0 or not history.day:
            return np.full((len(origins), steps), NAN)
        features = _Features(np.log(history.values + floor), history.day, history.week, steps)
        fitted_at = knots(steps, _GROWTH)
        fitted = np.stack([_fitted(features, each, origins) for each in fitted_at])
        forecasts = np.empty((len(origins), steps))
        ahead = np.arange(1, steps + 1)
        for number, origin in enumerate(origins):
            weights = np.stack([np.interp(ahead, fitted_at, column) for column in fitted[:, number].T], axis=1)
            targets = origin - 1 + ahead
            line = features.usual(targets, ahead) + (features.of(targets, ahead) * weights).sum(axis=1)
            forecasts[number] = np.maximum(0.0, np.exp(np.minimum(line, features.highest[origin - 1])) - floor)
        return forecasts


def _mean(values: Array) -> float:
    known = values[np.isfinite(values)]
    return float(known.mean()) if len(known) else 0.0


def _fitted(features: _Features, ahead: int, origins: Sequence[int]) -> Array:
    """Weights of the features at each origin, from the targets before it."""
    targets = np.arange(ahead, max(origins))
    x = features.of(targets, np.full(len(targets), ahead))
    y = features.logs[targets] - features.usual(targets, np.full(len(targets), ahead))
    told = np.isfinite(y) & np.isfinite(x).all(axis=1)
    targets, x, y = targets[told], x[told], y[told]
    before = targets < min(origins)
    first = _solved(x[before].T @ x[before], x[before].T @ y[before], int(before.sum()))
    missed = np.abs(y - x @ first)
    usual = max(float(np.median(missed[before])) if before.any() else 0.0, 1e-6)
    weighted = x / np.maximum(1.0, missed / usual)[:, np.newaxis]
    weights = np.empty((len(origins), x.shape[1]))
    squares, products, row = np.zeros((x.shape[1], x.shape[1])), np.zeros(x.shape[1]), 0
    for number in np.argsort(origins, kind="stable"):
        end = int(np.searchsorted(targets, origins[number]))
        squares += weighted[row:end].T @ x[row:end]
        products += weighted[row:end].T @ y[row:end]
        row = end
        weights[number] = _solved(squares, products, end)
    return weights


def _solved(squares: Array, products: Array, rows: int) -> Array:
    """With a ridge: features that say nothing new get no weight; with hardly any rows, none does."""
    if rows < _LEAST_ROWS:
        return np.zeros(len(products))
    ridge = _RIDGE * np.diag(squares) + 1e-6 * rows
    return np.asarray(np.linalg.solve(squares + np.diag(ridge), products))


class _Features:
    """What is known at an origin about a target, each relative to the usual course at the target."""

    def __init__(self, logs: Array, day: int, week: int, steps: int) -> None:
        self.logs = logs
        self.highest = np.fmax.accumulate(logs) + np.log(_HIGHEST)
        self._day, self._week = day, week
        self._width = int(day * _SMOOTHED)
        extended = np.concatenate([logs, np.full(steps, NAN)])
        self._raw = extended
        self._daily = _carried(_smoothed(extended, self._width), day, _CARRIED_DAY)
        self._sharp = _carried(extended, day, _CARRIED_DAY)
        self._weekly = _carried(_smoothed(extended, self._width), week, _CARRIED_WEEK) if week else self._daily
        off = extended - self._daily
        self._off = _filled([_recent_mean(off, max(1, round(day * share))) for share in _WINDOWS])
        hour = max(1, round(day * _HOUR))
        self._course = _recent_mean(self._daily, hour)
        self._weekly_off = np.nan_to_num(_recent_mean(self._weekly - self._daily, hour))

    def usual(self, targets: IntArray, ahead: IntArray) -> Array:
        return self._at(self._daily, targets - self._whole(ahead + self._width, self._day))

    def of(self, targets: IntArray, ahead: IntArray) -> Array:
        origins = targets - ahead
        usual = self.usual(targets, ahead)
        columns = [np.ones(len(targets)), *(self._at(off, origins) for off in self._off)]
        columns.append(np.nan_to_num(self._at(self._course, origins) - usual))
        yesterday = targets - self._whole(ahead, self._day)
        columns.append(np.nan_to_num(self._at(self._sharp, yesterday) - usual))
        columns.append(np.nan_to_num(self._at(self._raw, yesterday - self._day) - usual))
        if self._week:
            weekly = self._at(self._weekly, targets - self._whole(ahead + self._width, self._week))
            columns.append(np.nan_to_num(weekly - usual))
            columns.append(self._at(self._weekly_off, origins))
        return np.stack(columns, axis=1)

    @staticmethod
    def _whole(ahead: IntArray, season: int) -> IntArray:
        """How much further back than one season, in whole ones, to find what is known at the origin."""
        return np.asarray((ahead - 1) // season * season, dtype=np.int64)

    @staticmethod
    def _at(values: Array, places: IntArray) -> Array:
        return np.where(places >= 0, values[np.maximum(places, 0)], NAN)


def _filled(windows: list[Array]) -> list[Array]:
    """Where the last minutes are unknown, the last hours speak for them."""
    filled = [np.nan_to_num(windows[-1])]
    for window in reversed(windows[:-1]):
        filled.append(np.where(np.isfinite(window), window, filled[-1]))
    return filled[::-1]


def _carried(values: Array, season: int, weight: float) -> Array:
    """For each place the mean of the same place in the seasons before it, the newer ones counting more."""
    rows = -(-len(values) // season)
    lines = np.concatenate([values, np.full(rows * season - len(values), NAN)]).reshape(rows, season)
    carried = np.empty_like(lines)
    usual, seen = np.zeros(season), np.zeros(season)
    for number, line in enumerate(lines):
        carried[number] = np.where(seen > 0, usual, NAN)
        known = np.isfinite(line)
        seen += known
        usual += np.where(known, np.maximum(weight, 1.0 / np.maximum(seen, 1.0)) * (line - usual), 0.0)
    return carried.reshape(-1)[: len(values)]


def _smoothed(values: Array, width: int) -> Array:
    """Mean over `width` places to both sides."""
    if not width:
        return values
    padded = np.concatenate([values, np.full(width, NAN)])
    return _recent_mean(padded, 2 * width + 1)[width:]


def _recent_mean(values: Array, count: int) -> Array:
    """Mean of the known ones among the latest `count` values, at each place."""
    known = np.isfinite(values)
    totals = np.concatenate([[0.0], np.cumsum(np.where(known, values, 0.0))])
    counts = np.concatenate([[0], np.cumsum(known)])
    start = np.maximum(0, np.arange(1, len(values) + 1) - count)
    number = counts[1:] - counts[start]
    means = np.full(len(values), NAN)
    np.divide(totals[1:] - totals[start], number, out=means, where=number > 0)
    return means
