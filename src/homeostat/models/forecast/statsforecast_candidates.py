"""Candidates from statsforecast, for those who install it: `pip install 'homeostat[forecast]'`."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import NAN, Array
from homeostat.models.forecast.baselines import Forecaster
from homeostat.models.forecast.series import LEAST_SEASONS, Series, known_mean

# Their cost grows fast with the season: a day is cut into quarters of an hour at most, and two weeks are enough.
_FINEST = 96
_DAYS = 14


@dataclass(frozen=True, slots=True)
class FromStatsforecast:
    """One of its models, made anew for each history; `make` gets the length of the season, 1 if there is none. They
    take so long that only few moments can be tried."""

    name: str
    make: Callable[[int], Any]
    most_origins: int = 12

    def ahead(self, history: Series, steps: int) -> Array:
        each = max(1, math.ceil(history.day / _FINEST))
        season = max(1, history.day // each)
        values = _means(history.values, each)[-_DAYS * max(season, _FINEST) :]
        known = np.isfinite(values)
        if len(values) < LEAST_SEASONS * season or known.sum() < len(values) / 2:
            return np.full(steps, NAN)
        whole = np.interp(np.arange(len(values)), np.flatnonzero(known), values[known])
        coming = self.make(season).forecast(y=whole, h=math.ceil(steps / each))["mean"]
        return np.maximum(0.0, np.repeat(np.asarray(coming, dtype=np.float64), each)[:steps])


def candidates() -> tuple[Forecaster, ...]:
    try:
        from statsforecast import models
    except ImportError:
        raise ConfigError("statsforecast is not installed", fix="pip install 'homeostat[forecast]'") from None
    return (
        FromStatsforecast("statsforecast MSTL", lambda season: models.MSTL(season, models.AutoETS(model="ZZN"))),
        FromStatsforecast("statsforecast Theta", lambda season: models.DynamicOptimizedTheta(season)),
    )


def _means(values: Array, each: int) -> Array:
    """Of `each` values, counted from the newest."""
    whole = len(values) // each * each
    return known_mean(values[len(values) - whole :].reshape(-1, each))
