"""Clocks. Durations come from the monotonic clock. The time of day is for people and other processes.

The clock of a machine can be set back or forward while an application runs, and Spark's driver may run on a machine
with another clock. This must neither stop the sensors nor delay an alert. Homeostat therefore runs on a steady clock,
which starts at the time of day. Times from Spark's clock are converted on arrival, and the log gets the time of day.
"""

from __future__ import annotations

import time
from collections.abc import Callable

# If the driver's time differs by more than this, its clock is a different one. A smaller difference is the delay of its
# answer. A choice: much longer than such a delay, and shorter than the silence that raises an alert.
_OTHER_CLOCK_S = 30.0
# A difference from the time of day below this is not worth correcting in the log.
_SAME_CLOCK_S = 1.0


class SteadyClock:
    """Starts at the time of day and then follows the monotonic clock, which the system may slow down or speed up but
    never sets.

    After the machine was asleep or its clock was set, the steady clock differs from the time of day.
    """

    def __init__(
        self, time_of_day: Callable[[], float] = time.time, monotonic: Callable[[], float] = time.monotonic
    ) -> None:
        self._time_of_day, self._monotonic = time_of_day, monotonic
        self._start_s = time_of_day() - monotonic()

    def now_s(self) -> float:
        return self._start_s + self._monotonic()

    def to_time_of_day(self, steady_s: float) -> float:
        return steady_s + self._behind_s()

    def from_time_of_day(self, moment_s: float) -> float:
        return moment_s - self._behind_s()

    def _behind_s(self) -> float:
        """How far this clock is behind the time of day; 0 if the difference is small."""
        behind_s = self._time_of_day() - self.now_s()
        return behind_s if abs(behind_s) > _SAME_CLOCK_S else 0.0


# All parts of a process must agree on the time.
STEADY = SteadyClock()


class DriverClock:
    """Converts times of a driver on another machine into times of the steady clock.

    While the two clocks agree, apart from short delays, a time is left unchanged.
    """

    def __init__(self, now_s: Callable[[], float] = STEADY.now_s) -> None:
        self._now_s = now_s
        self._behind_s = 0.0

    def hear(self, moment_s: float) -> None:
        """Take note of the current time by the driver's clock."""
        behind_s = self._now_s() - moment_s
        if abs(behind_s - self._behind_s) > _OTHER_CLOCK_S:
            self._behind_s = behind_s if abs(behind_s) > _OTHER_CLOCK_S else 0.0

    def steady_s(self, moment_s: float) -> float:
        return moment_s + self._behind_s
