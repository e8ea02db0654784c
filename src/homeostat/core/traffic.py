"""What arrived, minute by minute, for weeks: the history that forecasts are made from, over all configurations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace

MINUTE_S = 60.0
KEPT = 14 * 24 * 60
_EDGE = 1e-6


@dataclass(frozen=True, slots=True)
class Traffic:
    """`per_s` has the mean rate of each whole minute, the first of which is `first` minutes after time zero; NaN where
    nothing was seen. `rows` arrived in the `seconds` seen of the minute after them. `sources` has the same of each,
    where there are several."""

    first: int = 0
    per_s: tuple[float, ...] = ()
    rows: float = 0.0
    seconds: float = 0.0
    sources: Mapping[str, Traffic] = field(default_factory=dict, hash=False)

    @property
    def end_s(self) -> float:
        return (self.first + len(self.per_s)) * MINUTE_S

    def until(self, at_s: float) -> Traffic:
        """The whole minutes before that moment, of all sources together."""
        count = min(len(self.per_s), max(0, math.floor(at_s / MINUTE_S + _EDGE) - self.first))
        return Traffic(self.first, self.per_s[:count])

    def highest_per_s(self, start_s: float) -> float:
        """Of the whole minutes since then; NaN if none was seen."""
        seen = self.per_s[max(0, math.ceil(start_s / MINUTE_S - _EDGE) - self.first) :]
        return max((rate for rate in seen if math.isfinite(rate)), default=math.nan)

    def after(
        self, at_s: float, span_s: float, arrival_per_s: float, by_source: Mapping[str, float] | None = None
    ) -> Traffic:
        """With an observation of the last `span_s` more. One that comes late, or does not know, adds nothing."""
        whole = self._whole_after(at_s, span_s, arrival_per_s)
        if not self.sources and len(by_source or {}) < 2:
            return whole
        kept = {name: one for name, one in self.sources.items() if at_s - one.end_s < KEPT * MINUTE_S}
        seen = {name: kept.get(name, Traffic()).after(at_s, span_s, rate) for name, rate in (by_source or {}).items()}
        return replace(whole, sources=kept | seen)

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
        closed = self.rows / self.seconds if self.seconds > 0 else math.nan
        between = tuple(arrival_per_s if began <= each else math.nan for each in range(open_minute + 1, minute))
        per_s = (*self.per_s, closed, *between)
        inside_s = min(span_s, at_s - minute * MINUTE_S)
        return Traffic(self.first + max(0, len(per_s) - KEPT), per_s[-KEPT:], arrival_per_s * inside_s, inside_s)


Seen = tuple[float, float, float] | tuple[float, float, float, Mapping[str, float]]


def traffic_of(observed: Iterable[Seen]) -> Traffic:
    """From lines of (when it ended, how long it was, what arrived per second, and that of each source), the oldest
    first."""
    found = Traffic()
    for line in observed:
        found = found.after(*line)
    return found
