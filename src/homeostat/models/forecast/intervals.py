"""Intervals around a forecast, from the quantiles of its own errors in the backtest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.core.stats import numpy_quantile
from homeostat.models.forecast.series import knots, known_mean

# Errors of steps up to this factor nearer or further count too: a larger factor makes the quantiles smoother, a smaller
# one keeps the horizons apart. A choice.
_NEIGHBOUR_FACTOR = 1.5
# Quantiles are computed at steps that are this factor apart and interpolated between. A choice.
_STEP_GROWTH = 1.15
# Added to every forecast, as a share of the mean, so that a forecast near 0 still has an interval. A choice.
_FLOOR_SHARE = 0.05
# Parts of the backtest for the cross-validated coverage: more give a fairer estimate and take longer. A choice.
_STRETCHES = 8
# The power that is assumed if levels vary too little to fit one (half-way between constant and proportional errors),
# and the variance of ln(level) from which one is fitted. Choices.
_ASSUMED_POWER, _LEAST_LEVEL_VARIANCE = 0.5, 1e-6


class Errors:
    """Errors relative to (forecast + floor) ^ power, a scale that grows with the forecast as the errors did."""

    def __init__(self, forecasts: Array, actual: Array) -> None:
        self._floor = max(_FLOOR_SHARE * float(np.mean(forecasts)), 1e-9)
        self._power = _power(forecasts + self._floor, np.abs(actual - forecasts))
        self._relative = (actual - forecasts) / self._scale(forecasts)

    def quantiles(self, forecast: Array, levels: Sequence[float]) -> Array:
        """Return one line per step and one column per quantile."""
        return self._around(forecast, _offsets(self._relative, levels))

    def coverage(self, forecasts: Array, actual: Array, low: float, high: float) -> float:
        """Return the share of actual values between two quantiles, each stretch judged by the errors of the others."""
        inside = np.full_like(actual, NAN)
        for stretch in np.array_split(np.arange(len(forecasts)), min(_STRETCHES, len(forecasts))):
            offsets = _offsets(np.delete(self._relative, stretch, axis=0), (low, high))
            for number in stretch:
                bounds = self._around(forecasts[number], offsets)
                usable = np.isfinite(actual[number]) & np.isfinite(bounds).all(axis=1)
                is_covered = (actual[number] >= bounds[:, 0]) & (actual[number] <= bounds[:, 1])
                inside[number] = np.where(usable, is_covered, NAN)
        return float(known_mean(inside.reshape(1, -1))[0])

    def _around(self, forecast: Array, offsets: Array) -> Array:
        return np.maximum(0.0, forecast[:, np.newaxis] + offsets * self._scale(forecast)[:, np.newaxis])

    def _scale(self, forecast: Array) -> Array:
        return np.asarray((forecast + self._floor) ** self._power)


def _power(levels: Array, errors: Array) -> float:
    """The slope of ln(error) over ln(level), between 0 (constant errors) and 1 (proportional errors)."""
    usable = np.isfinite(errors) & (errors > 0)
    x, y = np.log(levels[usable]), np.log(errors[usable])
    spread = float(np.var(x)) if len(x) else 0.0
    if spread < _LEAST_LEVEL_VARIANCE:
        return _ASSUMED_POWER
    return float(np.clip(np.mean((x - x.mean()) * (y - y.mean())) / spread, 0.0, 1.0))


def _offsets(relative: Array, levels: Sequence[float]) -> Array:
    """Quantiles of the relative errors, one line per step, interpolated between some of them."""
    measured_at = knots(relative.shape[1], _STEP_GROWTH)
    measured = np.stack([_quantiles(_near(relative, step), levels) for step in measured_at])
    complete = np.isfinite(measured).all(axis=1)
    if not complete.any():
        return np.full((relative.shape[1], len(levels)), NAN)
    ahead = np.arange(1, relative.shape[1] + 1)
    steps = np.array(measured_at)[complete]
    return np.stack([np.interp(ahead, steps, column) for column in measured[complete].T], axis=1)


def _near(relative: Array, step: int) -> Array:
    """Errors of steps about as far ahead; a single step has too few."""
    low, high = int(step / _NEIGHBOUR_FACTOR), int(np.ceil(step * _NEIGHBOUR_FACTOR))
    near = relative[:, low:high]
    return np.asarray(near[np.isfinite(near).any(axis=1)])


def _quantiles(errors: Array, levels: Sequence[float]) -> Array:
    """Conformal quantiles: further out than the plain ones, so that n errors also cover the next one."""
    count = len(errors)
    known_errors = errors[np.isfinite(errors)]
    if not len(known_errors):
        return np.full(len(levels), NAN)
    wider_levels = [0.5 + (level - 0.5) * (1 + 1 / max(count, 1)) for level in levels]
    ordered = np.sort(known_errors)
    return np.array([numpy_quantile(ordered, min(max(level, 0.0), 1.0)) for level in wider_levels])
