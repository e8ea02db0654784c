"""Holt-Winters with a damped trend and an additive season: a small implementation of the textbook method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.series import Series

HOLT_WINTERS = "Holt-Winters"

# Smoothing weights that are tried side by side, from slow to quick: more fit better, and each costs a column. Choices.
_LEVEL_WEIGHTS = (0.01, 0.05, 0.2, 0.5, 0.9)
_TREND_WEIGHTS = (0.0, 0.1)
_SEASON_WEIGHTS = (0.05, 0.2, 0.5)
# How much of the trend remains with each step: 1 would extend a rise without end. The usual upper limit of the textbook
# (Hyndman and Athanasopoulos, Forecasting: Principles and Practice).
_DAMPING = 0.98


@dataclass(frozen=True, slots=True)
class HoltWinters:
    """One pass over the history with every combination of smoothing weights side by side.

    At each origin the combination with the smallest one-step error so far makes the forecast.
    """

    name: str = HOLT_WINTERS

    def ahead(self, history: Series, steps: int) -> Array:
        return np.asarray(self.rolled(history, [len(history.values)], steps)[0])

    def rolled(self, history: Series, origins: Sequence[int], steps: int) -> Array:
        season = max(1, history.day)
        forecasts = np.full((len(origins), steps), NAN)
        if np.isfinite(history.values[: 2 * season]).sum() < 2:
            return forecasts
        line_of_origin = {origin: number for number, origin in enumerate(origins)}
        smoother = _Smoother(history.values[: 2 * season], season)
        for index in range(season, len(history.values) + 1):
            if index in line_of_origin and index >= 2 * season:
                forecasts[line_of_origin[index]] = smoother.ahead(index, steps)
            if index < len(history.values):
                smoother.learn(index, float(history.values[index]))
        return forecasts


class _Smoother:
    """The states of all combinations of weights, as columns."""

    def __init__(self, first: Array, season: int) -> None:
        weights = np.array(list(product(_LEVEL_WEIGHTS, _TREND_WEIGHTS, _SEASON_WEIGHTS if season > 1 else (0.0,))))
        alpha, beta, gamma = weights.T
        self._to_level, self._to_trend, self._to_season = alpha, alpha * beta, gamma * (1.0 - alpha)
        known_values = first[np.isfinite(first)]
        level = float(known_values.mean())
        self._level = np.full(len(weights), level)
        self._trend = np.zeros(len(weights))
        # Start with the first season; its unknown places count as average.
        start = np.where(np.isfinite(first[:season]), first[:season] - level, 0.0) if season > 1 else np.zeros(1)
        self._season = np.repeat(start[:, np.newaxis], len(weights), axis=1)
        self._error = np.zeros(len(weights))

    def learn(self, index: int, value: float) -> None:
        place = index % len(self._season)
        self._trend *= _DAMPING
        self._level += self._trend
        if value != value:
            return
        error = value - self._level - self._season[place]
        self._error += np.abs(error)
        self._level += self._to_level * error
        self._trend += self._to_trend * error
        self._season[place] += self._to_season * error

    def ahead(self, index: int, steps: int) -> Array:
        best = int(np.argmin(self._error))
        damping = np.cumsum(_DAMPING ** np.arange(1, steps + 1))
        places = (index + np.arange(steps)) % len(self._season)
        path = self._level[best] + self._trend[best] * damping + self._season[places, best]
        return np.asarray(np.maximum(0.0, path))
