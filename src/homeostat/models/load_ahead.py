"""The load to come, if a forecast is good enough to act on. Each source has its own champion; the loads are added."""

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

# Seconds between two forecasts: shorter follows the load sooner, but each forecast takes time in the loop. A choice.
REFRESH_S = 300.0
# More sources than this are forecast as one, because the loop waits for every forecast. A choice.
MOST_SEPARATE_SOURCES = 8
AS_NOW = "as it is now"

# Candidates are tested at this many moments of the past: half of the default, because the loop waits. A choice.
_ORIGINS = 32
# The number of cached forecasts, so that the same history is forecast once: two for each of several sources.
_KEPT_FORECASTS = 64
# A forecast is not used while the one before was wrong by more than this factor on average. A choice.
_LARGEST_ERROR = math.log(1.5)
# The level of a source without a usable forecast is the mean of this many minutes. A choice.
_RECENT_MINUTES = 10
# Forecasts are used only if one of the sources that have a forecast brings at least this share of the load. Otherwise
# the other sources decide. A choice.
_NOTABLE_SHARE = 0.1
# The number of digests that are searched for the newest known sources. A choice.
_RECENT_DIGESTS = 5

Forecasts = Callable[[Traffic, float, float], Forecast]


@dataclass(frozen=True, slots=True)
class Coming:
    """The expected load, step by step.

    `times_s` is the start of each step, `middle_per_s` the median and `high_per_s` the rate that is not exceeded with
    the required confidence. If there are several sources, `sources` has the expected load of each.
    """

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
        """Return the same load on another grid. The first and the last step extend beyond their ends."""
        steps = np.floor((times_s - self.times_s[0]) / self.step_s + 1e-9).astype(np.int64)
        places = np.clip(steps, 0, len(self.times_s) - 1)
        middle, high = self.middle_per_s[places], self.high_per_s[places]
        return replace(self, times_s=times_s, middle_per_s=middle, high_per_s=high, step_s=step_s)


def forecasts_by(candidates: Sequence[Forecaster]) -> Forecasts:
    """Return a function that forecasts with the best of these candidates and caches its results."""

    @lru_cache(maxsize=_KEPT_FORECASTS)
    def cached_forecast(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        times_s = (traffic.first + np.arange(len(traffic.per_s))) * MINUTE_S
        history = regular(times_s, np.array(traffic.per_s), horizon_s=horizon_s)
        quantiles = (1.0 - confidence, 0.5, confidence)
        return forecast(history, horizon_s, quantiles=quantiles, candidates=candidates, most_origins=_ORIGINS)

    return cached_forecast


forecast_of = forecasts_by(CANDIDATES)


def coming(view: View, horizon_s: float, confidence: float, forecasts: Forecasts = forecast_of) -> Coming | None:
    """Return the expected load; None if no source that matters has a forecast that is worth acting on."""
    sources = _separate_sources(view)
    if not sources:
        return _one_source(view.traffic, view.now_s, horizon_s, confidence, forecasts)
    expected = {name: _one_source(one, view.now_s, horizon_s, confidence, forecasts) for name, one in sources.items()}
    usable = [one for one in expected.values() if one is not None]
    if not usable:
        return None
    step_s = min(one.step_s for one in usable)
    begin_s = min(float(one.times_s[0]) for one in usable)
    end_s = min(float(one.times_s[-1]) + one.step_s for one in usable)
    count = max(1, round((end_s - begin_s) / step_s))
    times_s = np.asarray(begin_s + step_s * np.arange(count), dtype=np.float64)
    parts = {
        name: _as_now(sources[name], view.now_s, confidence, times_s, step_s)
        if one is None
        else one.on(times_s, step_s)
        for name, one in expected.items()
    }
    total = _total(parts)
    # If the level of one source is unknown, the total is NaN, and the comparison below fails.
    notable = _NOTABLE_SHARE * float(total.middle_per_s.max())
    forecast_parts = [parts[name] for name, one in expected.items() if one is not None]
    return total if any(one.middle_per_s.max() >= notable for one in forecast_parts) else None


def _separate_sources(view: View) -> dict[str, Traffic]:
    """The traffic of each source that is forecast on its own.

    Empty if there is one source, or if the total has a much longer history than any source, as after reading a log that
    does not separate them.
    """
    newest = next(
        (digest.arrivals_per_s for digest in reversed(view.history[-_RECENT_DIGESTS:]) if digest.arrivals_per_s), {}
    )
    traffic = {name: view.traffic.sources.get(name, Traffic()) for name in newest}
    if not 1 < len(traffic) <= MOST_SEPARATE_SOURCES:
        return {}
    return traffic if 2 * max(len(one.per_s) for one in traffic.values()) >= len(view.traffic.per_s) else {}


def _one_source(
    traffic: Traffic, now_s: float, horizon_s: float, confidence: float, forecasts: Forecasts
) -> Coming | None:
    due_s = _last_refresh_s(now_s)
    # Wait until the previous minute is complete. Otherwise it would change the forecast later.
    made_s = min(due_s, _last_refresh_s(traffic.end_s))
    ahead_s = math.ceil(horizon_s / REFRESH_S + 1.0) * REFRESH_S
    past = traffic.until(made_s)
    if not past.per_s or made_s < due_s - REFRESH_S:
        return None
    newest = forecasts(past, ahead_s, confidence)
    if not newest.usable or _clearly_wrong(forecasts(past.until(made_s - ahead_s), ahead_s, confidence), past):
        return None
    return Coming(
        times_s=np.asarray(newest.made_at_s + newest.step_s * np.arange(len(newest.values)), dtype=np.float64),
        middle_per_s=newest.column(0.5),
        high_per_s=newest.column(confidence),
        step_s=newest.step_s,
        champion=newest.champion,
        mase=newest.mase,
    )


def _as_now(traffic: Traffic, now_s: float, confidence: float, times_s: Array, step_s: float) -> Coming:
    """The mean of the newest minutes and their upper quantile; NaN if there are no recent observations."""
    recent = np.array(traffic.per_s[-_RECENT_MINUTES:])
    recent = recent[np.isfinite(recent)]
    is_known = len(recent) and traffic.end_s >= now_s - 2.0 * REFRESH_S
    middle, high = (float(recent.mean()), float(np.quantile(recent, confidence))) if is_known else (NAN, NAN)
    return Coming(times_s, np.full(len(times_s), middle), np.full(len(times_s), high), step_s, AS_NOW, NAN)


def _total(parts: Mapping[str, Coming]) -> Coming:
    """The total of all sources. Upper quantiles are added, because the sources of one application tend to rise together
    and do not average out."""
    first = next(iter(parts.values()))
    return replace(
        first,
        middle_per_s=np.sum([one.middle_per_s for one in parts.values()], axis=0),
        high_per_s=np.sum([one.high_per_s for one in parts.values()], axis=0),
        champion=", ".join(f"{one.champion} for {name}" for name, one in parts.items()),
        mase=max((one.mase for one in parts.values() if one.mase >= 0), default=NAN),
        sources=parts,
    )


def _last_refresh_s(at_s: float) -> float:
    return math.floor(at_s / REFRESH_S) * REFRESH_S


def _clearly_wrong(previous: Forecast, since: Traffic) -> bool:
    """Whether the forecast before this one was clearly wrong about the time since."""
    if not previous.usable:
        return False
    start = max(0, round(previous.made_at_s / MINUTE_S) - since.first)
    arrivals = np.array(since.per_s[start:])
    arrivals = arrivals[np.isfinite(arrivals)]
    expected = float(previous.column(0.5).mean())
    if not len(arrivals) or not (arrivals.mean() > 0 and expected > 0):
        return False
    return abs(math.log(float(arrivals.mean()) / expected)) > _LARGEST_ERROR
