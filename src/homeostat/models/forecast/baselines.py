"""The naive forecasts that every other forecast must beat, and the protocol of a forecaster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.series import Series

LAST_VALUE = "last value"
SEASONAL_NAIVE = "seasonal naive"
WEEKLY_NAIVE = "weekly naive"
NAIVE = (LAST_VALUE, SEASONAL_NAIVE, WEEKLY_NAIVE)


class Forecaster(Protocol):
    """Forecasts a series. A plug-in needs no more; its intervals come from its past errors."""

    @property
    def name(self) -> str: ...

    def ahead(self, history: Series, steps: int) -> Array:
        """Return the expected median of each of the next steps; NaN where it is unknown."""
        ...


@runtime_checkable
class Rolling(Protocol):
    """A forecaster that can forecast from many moments in one pass over the history."""

    def rolled(self, history: Series, origins: Sequence[int], steps: int) -> Array:
        """Return one line of forecasts per origin, using only the values before it."""
        ...


def roll(forecaster: Forecaster, history: Series, origins: Sequence[int], steps: int) -> Array:
    if isinstance(forecaster, Rolling):
        return forecaster.rolled(history, origins, steps)
    return np.array([forecaster.ahead(history.until(origin), steps) for origin in origins])


@dataclass(frozen=True, slots=True)
class LastValue:
    name: str = LAST_VALUE

    def ahead(self, history: Series, steps: int) -> Array:
        values = history.values[np.isfinite(history.values)]
        return np.full(steps, values[-1] if len(values) else NAN)


@dataclass(frozen=True, slots=True)
class SeasonalNaive:
    """The value one day ago, or one season ago if the history shows a season other than a day."""

    name: str = SEASONAL_NAIVE

    def ahead(self, history: Series, steps: int) -> Array:
        return _again(history.values, history.day, steps)


@dataclass(frozen=True, slots=True)
class WeeklyNaive:
    """The value one week ago."""

    name: str = WEEKLY_NAIVE

    def ahead(self, history: Series, steps: int) -> Array:
        return _again(history.values, history.week, steps)


def _again(values: Array, season: int, steps: int) -> Array:
    """Repeat the last season. Unknown values come from the season before."""
    if not season:
        return np.full(steps, NAN)
    before, last = values[-2 * season :].reshape(2, season)
    return np.resize(np.where(np.isfinite(last), last, before), steps)
