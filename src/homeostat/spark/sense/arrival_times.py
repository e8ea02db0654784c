"""When the row at an offset arrived, estimated from the times at which the end of its partition was known."""

from __future__ import annotations

import bisect
import math
from dataclasses import dataclass, field

from homeostat.core.observation import NAN

# Moments kept for each partition: half an hour of looks every second. Older ones are thinned out. A choice.
KEPT = 1_800


@dataclass(slots=True)
class ArrivalTimes:
    """The end of one partition at known moments, in order of time."""

    moments_s: list[float] = field(default_factory=list)
    ends: list[float] = field(default_factory=list)

    def add(self, at_s: float, end: float) -> None:
        """Add the end at a moment, which may be before the latest one. If the end has moved back, start a new
        history."""
        place = bisect.bisect_left(self.moments_s, at_s)
        if place == len(self.moments_s) and self.ends and end < self.ends[-1]:
            self.moments_s.clear()
            self.ends.clear()
            place = 0
        # Rows have timestamps from the clock of their writer, so an earlier time may contradict the observations.
        end = max(end, self.ends[place - 1]) if place else end
        end = min(end, self.ends[place]) if place < len(self.ends) else end
        self.moments_s.insert(place, at_s)
        self.ends.insert(place, end)
        if len(self.moments_s) > KEPT:
            # Keep every other entry of the older half: an old lag need not be known to the second.
            half = KEPT // 2
            self.moments_s[:half] = self.moments_s[:half:2]
            self.ends[:half] = self.ends[:half:2]

    def arrived_s(self, offset: float) -> float:
        """When the row at this offset arrived; NaN if it was there before the first moment, or has not arrived."""
        after = bisect.bisect_right(self.ends, offset)
        if after in (0, len(self.ends)):
            return NAN
        begun_s, ended_s = self.moments_s[after - 1], self.moments_s[after]
        share = (offset - self.ends[after - 1]) / (self.ends[after] - self.ends[after - 1])
        return begun_s + share * (ended_s - begun_s)

    def lag_s(self, offset: float, now_s: float) -> float:
        """For how long the row at this offset has waited; 0 if there is none yet, NaN if that is unknown."""
        if self.ends and offset >= self.ends[-1]:
            return 0.0
        return now_s - self.arrived_s(offset)

    def doubt(self, offset: float) -> tuple[float, float] | None:
        """The two moments between which the row arrived; None if that is not known."""
        after = bisect.bisect_right(self.ends, offset)
        if after in (0, len(self.ends)):
            return None
        return self.moments_s[after - 1], self.moments_s[after]

    def end_at(self, at_s: float) -> float:
        """The end at a moment; NaN before the first known moment, and the latest known end after the last one."""
        place = bisect.bisect_right(self.moments_s, at_s)
        if place == 0:
            return NAN
        if place == len(self.moments_s):
            return self.ends[-1]
        begun_s, ended_s = self.moments_s[place - 1], self.moments_s[place]
        share = (at_s - begun_s) / (ended_s - begun_s) if ended_s > begun_s else 0.0
        return self.ends[place - 1] + share * (self.ends[place] - self.ends[place - 1])

    def rate_per_s(self, now_s: float, over_s: float) -> float:
        """How fast the end has moved lately; NaN if only one moment is known."""
        begun_s = max(now_s - over_s, self.moments_s[0]) if self.moments_s else math.inf
        if not now_s > begun_s:
            return NAN
        return (self.end_at(now_s) - self.end_at(begun_s)) / (now_s - begun_s)
