"""The forecasts that any other must beat, and the protocol they all keep to."""

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
    """Says how it goes on. A plug-in needs no more; its intervals come from how wrong it was."""

    @property
    def name(self) -> str: ...

    def ahead(self, history: Series, steps: int) -> Array:
        """The middle of what is expected for each of the next steps; NaN where it cannot tell."""
        ...


@runtime_checkable
class Rolling(Protocol):
    """A forecaster that can go through a history once and tell what it would have said at many moments."""

    def rolled(self, history: Series, origins: Sequence[int], steps: int) -> Array:
        """A line for each origin, from the values before it and no others."""
        ...


def rolled(forecaster: Forecaster, history: Series, origins: Sequence[int], steps: int) -> Array:
    if isinstance(forecaster, Rolling):
        return forecaster.rolled(history, origins, steps)
    return np.array([forecaster.ahead(history.until(origin), steps) for origin in origins])


@dataclass(frozen=True, slots=True)
class LastValue:
    name: str = LAST_VALUE

    def ahead(self, history: Series, steps: int) -> Array:
        known = history.values[np.isfinite(history.values)]
        return np.full(steps, known[-1] if len(known) else NAN)


@dataclass(frozen=True, slots=True)
class SeasonalNaive:
    """What was a day ago, or a season, where the history shows another one in place of a day."""

    name: str = SEASONAL_NAIVE

    def ahead(self, history: Series, steps: int) -> Array:
        return _again(history.values, history.day, steps)


@dataclass(frozen=True, slots=True)
class WeeklyNaive:
    """What was a week ago."""

    name: str = WEEKLY_NAIVE

    def ahead(self, history: Series, steps: int) -> Array:
        return _again(history.values, history.week, steps)


def _again(values: Array, season: int, steps: int) -> Array:
    """The last season once more; what is unknown of it, as in the one before."""
    if not season:
        return np.full(steps, NAN)
    before, last = values[-2 * season :].reshape(2, season)
    return np.resize(np.where(np.isfinite(last), last, before), steps)
