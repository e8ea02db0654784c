"""The load to come, where a forecast is worth acting upon: each source by its own champion, and all together."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.core.traffic import MINUTE_S, Traffic
from homeostat.core.view import View
from homeostat.models.forecast import CANDIDATES, Forecast, Forecaster, forecast, regular

REFRESHED_S = 300.0
MOST_APART = 8  # more sources are forecast as one: the loop waits for every forecast
AS_NOW = "as it is now"

_ORIGINS = 32
_REMEMBERED = 64
_MOST_OFF = math.log(1.5)
_RECENT_MINUTES = 10
_NOTEWORTHY = 0.1

Forecasts = Callable[[Traffic, float, float], Forecast]


@dataclass(frozen=True, slots=True)
class Coming:
    """What is expected, step by step: `times_s` is when each step begins, `middle_per_s` what comes in the middle and
    `high_per_s` what is not exceeded with the wanted confidence. Of several sources `sources` has each one's own."""

    times_s: Array
    middle_per_s: Array
    high_per_s: Array
    step_s: float
    champion: str
    mase: float
    sources: Mapping[str, Coming] = field(default_factory=dict)

    def between(self, start_s: float, end_s: float) -> Coming:
        chosen = (self.times_s >= start_s) & (self.times_s < end_s)
        middle, high = self.middle_per_s[chosen], self.high_per_s[chosen]
        return replace(self, times_s=self.times_s[chosen], middle_per_s=middle, high_per_s=high)

    def on(self, times_s: Array, step_s: float) -> Coming:
        """The same on another grid; before its first step that one counts, after its last one that."""
        steps = np.floor((times_s - self.times_s[0]) / self.step_s + 1e-9).astype(np.int64)
        places = np.clip(steps, 0, len(self.times_s) - 1)
        middle, high = self.middle_per_s[places], self.high_per_s[places]
        return replace(self, times_s=times_s, middle_per_s=middle, high_per_s=high, step_s=step_s)


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
    """None while a naive forecast is as good, or what the last one said has not come: of every source that matters."""
    apart = _apart(view)
    if not apart:
        return _alone(view.traffic, view.now_s, horizon_s, confidence, forecasts)
    found = {name: _alone(one, view.now_s, horizon_s, confidence, forecasts) for name, one in apart.items()}
    usable = [one for one in found.values() if one is not None]
    if not usable:
        return None
    step_s = min(one.step_s for one in usable)
    begin_s = min(float(one.times_s[0]) for one in usable)
    end_s = min(float(one.times_s[-1]) + one.step_s for one in usable)
    count = max(1, round((end_s - begin_s) / step_s))
    times_s = np.asarray(begin_s + step_s * np.arange(count), dtype=np.float64)
    parts = {
        name: _as_now(apart[name], view.now_s, confidence, times_s, step_s) if one is None else one.on(times_s, step_s)
        for name, one in found.items()
    }
    whole = _together(parts)
    # Where the level of one is unknown, so is the whole, and nothing is a share of that.
    least = _NOTEWORTHY * float(whole.middle_per_s.max())
    heard = [parts[name] for name, one in found.items() if one is not None]
    return whole if any(one.middle_per_s.max() >= least for one in heard) else None


def _apart(view: View) -> dict[str, Traffic]:
    """The sources to be forecast each on its own; none where there is one, or all have been seen for far longer
    together than any of them alone, as after a log that does not tell them apart."""
    newest = next((digest.arrivals_per_s for digest in reversed(view.history[-5:]) if digest.arrivals_per_s), {})
    found = {name: view.traffic.sources.get(name, Traffic()) for name in newest}
    if not 1 < len(found) <= MOST_APART:
        return {}
    return found if 2 * max(len(one.per_s) for one in found.values()) >= len(view.traffic.per_s) else {}


def _alone(traffic: Traffic, now_s: float, horizon_s: float, confidence: float, forecasts: Forecasts) -> Coming | None:
    due_s = _refreshed_s(now_s)
    # Not before the minute before it is over: its end is known a while later, and would make another forecast.
    made_s = min(due_s, _refreshed_s(traffic.end_s))
    ahead_s = math.ceil(horizon_s / REFRESHED_S + 1.0) * REFRESHED_S
    known = traffic.until(made_s)
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


def _as_now(traffic: Traffic, now_s: float, confidence: float, times_s: Array, step_s: float) -> Coming:
    """The level of the newest minutes, and what few of them were above; unknown if nothing was seen lately."""
    recent = np.array(traffic.per_s[-_RECENT_MINUTES:])
    recent = recent[np.isfinite(recent)]
    known = len(recent) and traffic.end_s >= now_s - 2.0 * REFRESHED_S
    middle, high = (float(recent.mean()), float(np.quantile(recent, confidence))) if known else (NAN, NAN)
    return Coming(times_s, np.full(len(times_s), middle), np.full(len(times_s), high), step_s, AS_NOW, NAN)


def _together(parts: Mapping[str, Coming]) -> Coming:
    """What comes at all of them. Upper ends are added as they are: sources of one application tend to rise together,
    so that nothing may be taken off for one being low while the other is high."""
    first = next(iter(parts.values()))
    return replace(
        first,
        middle_per_s=np.sum([one.middle_per_s for one in parts.values()], axis=0),
        high_per_s=np.sum([one.high_per_s for one in parts.values()], axis=0),
        champion=", ".join(f"{one.champion} for {name}" for name, one in parts.items()),
        mase=max((one.mase for one in parts.values() if one.mase >= 0), default=NAN),
        sources=parts,
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
