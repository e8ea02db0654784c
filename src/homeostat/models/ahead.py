"""The load to come, where a forecast is worth acting upon."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np

from homeostat.core.observation import Array
from homeostat.core.traffic import MINUTE_S, Traffic
from homeostat.core.view import View
from homeostat.models.forecast import CANDIDATES, Forecast, Forecaster, forecast, regular

REFRESHED_S = 300.0

_ORIGINS = 32
_REMEMBERED = 16
_MOST_OFF = math.log(1.5)

Forecasts = Callable[[Traffic, float, float], Forecast]


@dataclass(frozen=True, slots=True)
class Coming:
    """What is expected, step by step: `times_s` is when each step begins, `middle_per_s` what comes in the middle and
    `high_per_s` what is not exceeded with the wanted confidence."""

    times_s: Array
    middle_per_s: Array
    high_per_s: Array
    step_s: float
    champion: str
    mase: float

    def between(self, start_s: float, end_s: float) -> Coming:
        chosen = (self.times_s >= start_s) & (self.times_s < end_s)
        middle, high = self.middle_per_s[chosen], self.high_per_s[chosen]
        return replace(self, times_s=self.times_s[chosen], middle_per_s=middle, high_per_s=high)


def forecasts_by(candidates: Sequence[Forecaster]) -> Forecasts:
    """By the best of these. The same history gives the same forecast: it is made once and asked many times."""

    @lru_cache(maxsize=_REMEMBERED)
    def made(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        times_s = (traffic.first + np.arange(len(traffic.per_s))) * MINUTE_S
        history = regular(times_s, np.array(traffic.per_s), horizon_s=horizon_s)
        quantiles = (1.0 - confidence, 0.5, confidence)
        return forecast(history, horizon_s, quantiles=quantiles, candidates=candidates, most_origins=_ORIGINS)

    return made


forecast_of = forecasts_by(CANDIDATES)


def coming(view: View, horizon_s: float, confidence: float, forecasts: Forecasts = forecast_of) -> Coming | None:
    """None while a naive forecast is as good, or what the last one said has not come."""
    due_s = _refreshed_s(view.now_s)
    # Not before the minute before it is over: its end is known a while later, and would make another forecast.
    made_s = min(due_s, _refreshed_s(view.traffic.end_s))
    ahead_s = math.ceil(horizon_s / REFRESHED_S + 1.0) * REFRESHED_S
    known = view.traffic.until(made_s)
    if not known.per_s or made_s < due_s - REFRESHED_S:
        return None
    made = forecasts(known, ahead_s, confidence)
    if not made.usable or _far_off(forecasts(known.until(made_s - ahead_s), ahead_s, confidence), known):
        return None
    return Coming(
        times_s=np.asarray(made.made_at_s + made.step_s * np.arange(len(made.values)), dtype=np.float64),
        middle_per_s=made.column(0.5),
        high_per_s=made.column(confidence),
        step_s=made.step_s,
        champion=made.champion,
        mase=made.mase,
    )


def _refreshed_s(at_s: float) -> float:
    return math.floor(at_s / REFRESHED_S) * REFRESHED_S


def _far_off(said: Forecast, since: Traffic) -> bool:
    """Whether the forecast before this one was clearly wrong about the time until now."""
    if not said.usable:
        return False
    start = max(0, round(said.made_at_s / MINUTE_S) - since.first)
    came = np.array(since.per_s[start:])
    came = came[np.isfinite(came)]
    expected = float(said.column(0.5).mean())
    if not len(came) or not (came.mean() > 0 and expected > 0):
        return False
    return abs(math.log(float(came.mean()) / expected)) > _MOST_OFF
