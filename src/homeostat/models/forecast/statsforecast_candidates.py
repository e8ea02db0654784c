"""Candidates from statsforecast. Install it with `pip install 'homeostat[forecast]'`."""

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

# The run time of these models grows very fast with the length of the season (measured: MSTL needs 310 ms at 15 min), so
# a day has at most 96 steps (of 15 min), and two weeks of history are used.
_MOST_STEPS_A_DAY = 96
_DAYS = 14


@dataclass(frozen=True, slots=True)
class FromStatsforecast:
    """A model of statsforecast, created for each history. `make` gets the length of the season, 1 if there is none.

    These models are slow, so they are tested at `most_origins` moments of the past only.
    """

    name: str
    make: Callable[[int], Any]
    most_origins: int = 12

    def ahead(self, history: Series, steps: int) -> Array:
        each = max(1, math.ceil(history.day / _MOST_STEPS_A_DAY))
        season = max(1, history.day // each)
        values = _means(history.values, each)[-_DAYS * max(season, _MOST_STEPS_A_DAY) :]
        is_known = np.isfinite(values)
        if len(values) < LEAST_SEASONS * season or is_known.sum() < len(values) / 2:
            return np.full(steps, NAN)
        whole = np.interp(np.arange(len(values)), np.flatnonzero(is_known), values[is_known])
        means = self.make(season).forecast(y=whole, h=math.ceil(steps / each))["mean"]
        return np.maximum(0.0, np.repeat(np.asarray(means, dtype=np.float64), each)[:steps])


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
    """Means of `each` values, counted from the newest."""
    whole = len(values) // each * each
    return known_mean(values[len(values) - whole :].reshape(-1, each))
