"""Detects a forecast load that is too high, just in time to act before it arrives."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

from homeostat.core.evidence import LoadRise, Measured
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import FORECAST_RISE, RISE_SEEN_S
from homeostat.core.view import View
from homeostat.models.capacity import Load, level, loads
from homeostat.models.load_ahead import Coming, Forecasts, coming, forecast_of

# How far beyond the rise to search for the highest load, to size for it: longer avoids a second action soon after, but
# sizes for a load further ahead, which is forecast less well. A choice.
_SIZING_S = 600.0
# Observations that pass between the forecast and the command. More acts earlier than necessary. A choice.
_OBSERVATIONS_TO_DECIDE = 2.0
# A forecast is made only if some past load times this factor reaches the limit. This avoids forecasts that cannot
# matter; a larger factor also allows for growth beyond any past load. A choice.
_GROWTH_ALLOWED = 1.2


@dataclass(frozen=True, slots=True)
class RiseDetector:
    """Reports a load that will exceed what was planned for by the time an action decided now would take effect.

    A rise that comes sooner is left to the other detectors, because an action ahead of it would be late. A fall of the
    load is never reported.
    """

    # The probability with which the load stays below the upper limit of the forecast: higher plans for rarer peaks and
    # pays for them. A choice.
    confidence: float = 0.9
    forecasts: Forecasts = forecast_of
    name: str = "forecast-rise"

    def detect(self, view: View) -> Iterator[Symptom]:
        arrival = level(view.flow("arrival_per_s"))
        measured = [load for load in loads(view).values() if load.is_known and not load.empty]
        lead_s = _lead_s(view)
        most = {load.component: _most_per_s(load, arrival) for load in measured} if arrival > 0 else {}
        least = min(most.values(), default=math.inf)
        # A forecast is expensive, and not needed if no past load comes near the limit.
        if not math.isfinite(lead_s) or not any(
            _GROWTH_ALLOWED * rate > least for rate in reversed(view.traffic.per_s)
        ):
            return
        forecast = coming(view, lead_s + RISE_SEEN_S + _SIZING_S, self.confidence, self.forecasts)
        if forecast is None:
            return
        due_s = view.now_s + lead_s
        for load in measured:
            limit, line = most[load.component], math.sqrt(load.target)
            before = _highest(forecast.between(view.now_s - forecast.step_s, due_s), line)
            soon = _highest(forecast.between(due_s, due_s + RISE_SEEN_S), line)
            if before <= limit < soon and soon > arrival:
                then = _highest(forecast.between(due_s, due_s + RISE_SEEN_S + _SIZING_S), load.target)
                yield _rise(load, arrival, then, soon, limit, lead_s, forecast)


def _most_per_s(load: Load, arrival: float) -> float:
    """Return the arrival rate at the sources from which the load is too high.

    It is the line that the pressure detector uses, half-way between the planned load and the capacity.
    """
    return arrival * math.sqrt(load.target) * load.capacity_per_s / level(load.offered_per_s)


def _rise(
    load: Load, arrival: float, expected: float, soon: float, limit: float, lead_s: float, forecast: Coming
) -> Symptom:
    evidence = LoadRise(arrival, expected, lead_s, limit, soon / limit, _forecasters(forecast))
    return Symptom(FORECAST_RISE, load.component, 1.0 - limit / soon, evidence)


def _forecasters(forecast: Coming) -> Measured:
    """Name the method that made the forecast, and its error; for several sources, those of each."""
    if not forecast.sources:
        return Measured({"forecast by": forecast.champion, "its error (MASE)": forecast.mase})
    champions: dict[str, float | str] = {
        f"forecast of {name} by": one.champion for name, one in forecast.sources.items()
    }
    errors = {f"error of {name} (MASE)": one.mase for name, one in forecast.sources.items() if one.mase >= 0}
    return Measured(champions | errors)


def _highest(expected: Coming, target: float) -> float:
    """Return the rate to plan for: the highest expected one, or the upper limit times the utilisation if that is more.

    0 if the forecast is empty.
    """
    if not len(expected.times_s):
        return 0.0
    return float(max(expected.middle_per_s.max(), target * expected.high_per_s.max()))


def _lead_s(view: View) -> float:
    """How long it takes until an action takes effect: some observations to decide, and the change itself."""
    knobs = {component.scaled_by for component in view.topology} & view.capabilities.knobs.keys()
    latest = view.window.latest
    if not knobs or latest is None:
        return math.nan
    return max(view.spec(knob).apply_s for knob in knobs) + _OBSERVATIONS_TO_DECIDE * latest.span_s
