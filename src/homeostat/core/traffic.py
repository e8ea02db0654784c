"""The arrival rate of each minute, for two weeks and over all configurations: the history that forecasts use."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

MINUTE_S = 60.0
# Minutes of history: two weeks show every weekday twice. More would help little, and cost memory and time. A choice.
KEPT = 14 * 24 * 60
# In minutes: a time this close to a full minute counts as that minute, because clocks are not exact.
_EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Traffic:
    """`per_s` holds the mean rate of each whole minute, the first of which is `first` minutes after time zero.

    A minute without observations is NaN. `rows` arrived in the observed `seconds` of the minute that is still open.
    `sources` holds the same for each source, if there are several.
    """

    first: int = 0
    per_s: tuple[float, ...] = ()
    rows: float = 0.0
    seconds: float = 0.0
    sources: Mapping[str, Traffic] = field(default_factory=dict, hash=False)

    @property
    def end_s(self) -> float:
        return (self.first + len(self.per_s)) * MINUTE_S

    def until(self, at_s: float) -> Traffic:
        """Return the whole minutes before that moment, of all sources together."""
        count = min(len(self.per_s), max(0, math.floor(at_s / MINUTE_S + _EDGE) - self.first))
        return Traffic(self.first, self.per_s[:count])

    def highest_per_s(self, start_s: float) -> float:
        """Return the highest rate of the whole minutes since then; NaN if none was observed."""
        rates = self.per_s[max(0, math.ceil(start_s / MINUTE_S - _EDGE) - self.first) :]
        return max((rate for rate in rates if math.isfinite(rate)), default=math.nan)

    def after(
        self, at_s: float, span_s: float, arrival_per_s: float, by_source: Mapping[str, float] | None = None
    ) -> Traffic:
        """Return this history with one observation more. A late one, or one without a rate, adds nothing."""
        whole = self._whole_after(at_s, span_s, arrival_per_s)
        if not self.sources and len(by_source or {}) < 2:
            return whole
        recent = {name: one for name, one in self.sources.items() if at_s - one.end_s < KEPT * MINUTE_S}
        updates = {
            name: recent.get(name, Traffic()).after(at_s, span_s, rate) for name, rate in (by_source or {}).items()
        }
        return replace(whole, sources=recent | updates)

    def _whole_after(self, at_s: float, span_s: float, arrival_per_s: float) -> Traffic:
        minute = math.floor(at_s / MINUTE_S - _EDGE)
        open_minute = self.first + len(self.per_s)
        nothing = not self.per_s and self.seconds == 0
        if not arrival_per_s >= 0 or (minute < open_minute and not nothing):
            return self
        if nothing or minute - open_minute > KEPT:
            return Traffic(minute, (), arrival_per_s * span_s, span_s)
        if minute == open_minute:
            return replace(self, rows=self.rows + arrival_per_s * span_s, seconds=self.seconds + span_s)
        began = math.ceil((at_s - span_s) / MINUTE_S - _EDGE)
        rate_per_s = self.rows / self.seconds if self.seconds > 0 else math.nan
        between = tuple(arrival_per_s if began <= each else math.nan for each in range(open_minute + 1, minute))
        per_s = (*self.per_s, rate_per_s, *between)
        inside_s = min(span_s, at_s - minute * MINUTE_S)
        return Traffic(self.first + max(0, len(per_s) - KEPT), per_s[-KEPT:], arrival_per_s * inside_s, inside_s)


ArrivalLine = tuple[float, float, float] | tuple[float, float, float, Mapping[str, float]]


def traffic_of(observed: Iterable[ArrivalLine]) -> Traffic:
    """Build the history from lines of (end, length, arrival per second, arrival of each source), the oldest first."""
    traffic = Traffic()
    for line in observed:
        traffic = traffic.after(*line)
    return traffic
