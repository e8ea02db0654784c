"""How far off a forecast may be, from how far off it was: quantiles of its own errors in the backtest."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.series import knots, known_mean

_NEIGHBOURS = 1.5
_GROWTH = 1.15
_FLOOR = 0.05
_STRETCHES = 8


class Errors:
    """Relative to a scale that grows with the forecast as the errors were seen to: (forecast + floor) ^ power."""

    def __init__(self, said: Array, actual: Array) -> None:
        self._floor = max(_FLOOR * float(np.mean(said)), 1e-9)
        self._power = _power(said + self._floor, np.abs(actual - said))
        self._relative = (actual - said) / self._scale(said)

    def quantiles(self, forecast: Array, wanted: Sequence[float]) -> Array:
        """A line for each step, a column for each quantile."""
        return self._around(forecast, _offsets(self._relative, wanted))

    def coverage(self, said: Array, actual: Array, low: float, high: float) -> float:
        """Share of what came that lay between two quantiles, each stretch judged by the errors in the others."""
        inside = np.full_like(actual, NAN)
        for stretch in np.array_split(np.arange(len(said)), min(_STRETCHES, len(said))):
            offsets = _offsets(np.delete(self._relative, stretch, axis=0), (low, high))
            for number in stretch:
                bounds = self._around(said[number], offsets)
                known = np.isfinite(actual[number]) & np.isfinite(bounds).all(axis=1)
                held = (actual[number] >= bounds[:, 0]) & (actual[number] <= bounds[:, 1])
                inside[number] = np.where(known, held, NAN)
        return float(known_mean(inside.reshape(1, -1))[0])

    def _around(self, forecast: Array, offsets: Array) -> Array:
        return np.maximum(0.0, forecast[:, np.newaxis] + offsets * self._scale(forecast)[:, np.newaxis])

    def _scale(self, forecast: Array) -> Array:
        return np.asarray((forecast + self._floor) ** self._power)


def _power(levels: Array, errors: Array) -> float:
    """The slope of ln error over ln level, between 0 (errors all alike) and 1 (in proportion)."""
    told = np.isfinite(errors) & (errors > 0)
    x, y = np.log(levels[told]), np.log(errors[told])
    spread = float(np.var(x)) if len(x) else 0.0
    if spread < 1e-6:
        return 0.5
    return float(np.clip(np.mean((x - x.mean()) * (y - y.mean())) / spread, 0.0, 1.0))


def _offsets(relative: Array, wanted: Sequence[float]) -> Array:
    """Quantiles of the relative errors: a line for each step, interpolated between some of them."""
    measured_at = knots(relative.shape[1], _GROWTH)
    measured = np.stack([_quantiles(_near(relative, step), wanted) for step in measured_at])
    told = np.isfinite(measured).all(axis=1)
    if not told.any():
        return np.full((relative.shape[1], len(wanted)), NAN)
    ahead = np.arange(1, relative.shape[1] + 1)
    steps = np.array(measured_at)[told]
    return np.stack([np.interp(ahead, steps, column) for column in measured[told].T], axis=1)


def _near(relative: Array, step: int) -> Array:
    """Errors of steps about as far ahead; a step alone has too few."""
    low, high = int(step / _NEIGHBOURS), int(np.ceil(step * _NEIGHBOURS))
    near = relative[:, low:high]
    return np.asarray(near[np.isfinite(near).any(axis=1)])


def _quantiles(errors: Array, wanted: Sequence[float]) -> Array:
    """Further out than the plain ones, as so few origins demand: with n of them, the n + 1st must be covered."""
    count = len(errors)
    known = errors[np.isfinite(errors)]
    if not len(known):
        return np.full(len(wanted), NAN)
    levels = [0.5 + (quantile - 0.5) * (1 + 1 / max(count, 1)) for quantile in wanted]
    return np.asarray(np.quantile(known, np.clip(levels, 0.0, 1.0)))
