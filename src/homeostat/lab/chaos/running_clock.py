"""Clocks that stop or slow down while nothing could run, because the application did not cause that delay."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

# A step of the bench takes far less. A longer one means that this process itself did not run.
LONGEST_STEP_S = 10.0
# The share of the processor is measured over at least this many seconds of running and waiting. A choice.
_LEAST_MEASURED_S = 0.1
_SCHEDULER = Path("/proc/self/schedstat")


class RunningClock:
    """Seconds in which this process ran. Read it often: a longer gap counts as `LONGEST_STEP_S`."""

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._read_s = monotonic()
        self._ran_s = 0.0

    def __call__(self) -> float:
        now_s = self._monotonic()
        self._ran_s += min(now_s - self._read_s, LONGEST_STEP_S)
        self._read_s = now_s
        return self._ran_s


def processor_s() -> tuple[float, float]:
    """How long this process was on a processor, and how long it waited for one; zero if the kernel does not count."""
    with suppress(OSError, ValueError):
        ran_ns, waited_ns = _SCHEDULER.read_text().split()[:2]
        return int(ran_ns) / 1e9, int(waited_ns) / 1e9
    return 0.0, 0.0


class PatienceClock:
    """The seconds of another clock, times the share of a processor that this process got when it wanted one.

    The application has the same priority as this process, so on a busy machine it gets about the same share, and
    everything takes that much longer. So a limit on this clock does not depend on the load of the machine.
    """

    def __init__(self, clock: Callable[[], float], processor: Callable[[], tuple[float, float]] = processor_s) -> None:
        self._clock, self._processor = clock, processor
        self._read_s, self._measured_s = clock(), processor()
        self._began_s = self._measured_s
        self._share = 1.0
        self._patience_s = 0.0

    def __call__(self) -> float:
        now_s = self._clock()
        self._measure()
        self._patience_s += (now_s - self._read_s) * self._share
        self._read_s = now_s
        return self._patience_s

    @property
    def mean_share(self) -> float:
        """The share over the whole life of the clock; 1 if this process never had to wait."""
        return _share(self._began_s, self._processor())

    def _measure(self) -> None:
        measured_s = self._processor()
        if sum(measured_s) - sum(self._measured_s) >= _LEAST_MEASURED_S:
            self._share, self._measured_s = _share(self._measured_s, measured_s), measured_s


def _share(before_s: tuple[float, float], after_s: tuple[float, float]) -> float:
    ran_s, waited_s = (after - before for after, before in zip(after_s, before_s, strict=True))
    return ran_s / (ran_s + waited_s) if ran_s + waited_s > 0 else 1.0
