"""Holt-Winters with a damped trend and an additive season: our own light implementation of the textbook method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import product

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.series import Series

HOLT_WINTERS = "Holt-Winters"

_LEVELS = (0.01, 0.05, 0.2, 0.5, 0.9)
_TRENDS = (0.0, 0.1)
_SEASONS = (0.05, 0.2, 0.5)
_DAMPING = 0.98


@dataclass(frozen=True, slots=True)
class HoltWinters:
    """One pass over the history with every combination of smoothing weights beside each other.

    At each origin the one with the smallest error one step ahead until then speaks.
    """

    name: str = HOLT_WINTERS

    def ahead(self, history: Series, steps: int) -> Array:
        return np.asarray(self.rolled(history, [len(history.values)], steps)[0])

    def rolled(self, history: Series, origins: Sequence[int], steps: int) -> Array:
        season = max(1, history.day)
        forecasts = np.full((len(origins), steps), NAN)
        if np.isfinite(history.values[: 2 * season]).sum() < 2:
            return forecasts
        wanted = {origin: number for number, origin in enumerate(origins)}
        smoother = _Smoother(history.values[: 2 * season], season)
        for index in range(season, len(history.values) + 1):
            if index in wanted and index >= 2 * season:
                forecasts[wanted[index]] = smoother.ahead(index, steps)
            if index < len(history.values):
                smoother.learn(index, float(history.values[index]))
        return forecasts


class _Smoother:
    """The states of all combinations, as columns."""

    def __init__(self, first: Array, season: int) -> None:
        weights = np.array(list(product(_LEVELS, _TRENDS, _SEASONS if season > 1 else (0.0,))))
        alpha, beta, gamma = weights.T
        self._to_level, self._to_trend, self._to_season = alpha, alpha * beta, gamma * (1.0 - alpha)
        known = first[np.isfinite(first)]
        level = float(known.mean())
        self._level = np.full(len(weights), level)
        self._trend = np.zeros(len(weights))
        # The first season, as it was; its unknown places are taken for average.
        start = np.where(np.isfinite(first[:season]), first[:season] - level, 0.0) if season > 1 else np.zeros(1)
        self._season = np.repeat(start[:, np.newaxis], len(weights), axis=1)
        self._error = np.zeros(len(weights))

    def learn(self, index: int, value: float) -> None:
        place = index % len(self._season)
        self._trend *= _DAMPING
        self._level += self._trend
        if value != value:
            return
        wrong = value - self._level - self._season[place]
        self._error += np.abs(wrong)
        self._level += self._to_level * wrong
        self._trend += self._to_trend * wrong
        self._season[place] += self._to_season * wrong

    def ahead(self, index: int, steps: int) -> Array:
        best = int(np.argmin(self._error))
        damped = np.cumsum(_DAMPING ** np.arange(1, steps + 1))
        places = (index + np.arange(steps)) % len(self._season)
        path = self._level[best] + self._trend[best] * damped + self._season[places, best]
        return np.asarray(np.maximum(0.0, path))
