"""More will come than can be taken: seen in the forecast, just in time to do something about it."""

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

_HELD_S = 600.0
_THINKING = 2.0
_BEYOND = 1.2


@dataclass(frozen=True, slots=True)
class RiseDetector:
    """The load will be beyond what was planned for as soon as an action decided now could have taken effect.

    What comes sooner is left to the detectors that see it come: an action ahead of it would be late. It looks at rises
    only, and never says anything about a fall.
    """

    confidence: float = 0.9
    forecasts: Forecasts = forecast_of
    name: str = "forecast-rise"

    def detect(self, view: View) -> Iterator[Symptom]:
        arrival = level(view.flow("arrival_per_s"))
        known = [load for load in loads(view).values() if load.known and not load.empty]
        lead_s = _lead_s(view)
        most = {load.component: _most_per_s(load, arrival) for load in known} if arrival > 0 else {}
        least = min(most.values(), default=math.inf)
        # What is far from anything that ever came is not worth a forecast.
        if not math.isfinite(lead_s) or not any(_BEYOND * rate > least for rate in reversed(view.traffic.per_s)):
            return
        found = coming(view, lead_s + RISE_SEEN_S + _HELD_S, self.confidence, self.forecasts)
        if found is None:
            return
        due_s = view.now_s + lead_s
        for load in known:
            limit, line = most[load.component], math.sqrt(load.target)
            before = _highest(found.between(view.now_s - found.step_s, due_s), line)
            soon = _highest(found.between(due_s, due_s + RISE_SEEN_S), line)
            if before <= limit < soon and soon > arrival:
                then = _highest(found.between(due_s, due_s + RISE_SEEN_S + _HELD_S), load.target)
                yield _rise(load, arrival, then, soon, limit, lead_s, found)


def _most_per_s(load: Load, arrival: float) -> float:
    """What may arrive at the sources: the same line as for a load that is there already, half-way between what was
    planned for and capacity."""
    return arrival * math.sqrt(load.target) * load.capacity_per_s / level(load.offered_per_s)


def _rise(
    load: Load, arrival: float, expected: float, soon: float, limit: float, lead_s: float, found: Coming
) -> Symptom:
    evidence = LoadRise(arrival, expected, lead_s, limit, soon / limit, _forecasters(found))
    return Symptom(FORECAST_RISE, load.component, 1.0 - limit / soon, evidence)


def _forecasters(found: Coming) -> Measured:
    """Which method made the forecast, and its error; for several sources those of each."""
    if not found.sources:
        return Measured({"forecast by": found.champion, "its error (MASE)": found.mase})
    champions: dict[str, float | str] = {f"forecast of {name} by": one.champion for name, one in found.sources.items()}
    errors = {f"error of {name} (MASE)": one.mase for name, one in found.sources.items() if one.mase >= 0}
    return Measured(champions | errors)


def _highest(expected: Coming, target: float) -> float:
    """What to plan for at this utilisation: the highest in the middle, or what is not exceeded, where that needs more;
    0 where nothing is said."""
    if not len(expected.times_s):
        return 0.0
    return float(max(expected.middle_per_s.max(), target * expected.high_per_s.max()))


def _lead_s(view: View) -> float:
    """How long an action takes that is decided now: some observations to think, and the change itself."""
    knobs = {component.scaled_by for component in view.topology} & view.capabilities.knobs.keys()
    latest = view.window.latest
    if not knobs or latest is None:
        return math.nan
    return max(view.spec(knob).apply_s for knob in knobs) + _THINKING * latest.span_s
