"""A clock that stands still while this process does: a machine that was suspended has not kept anyone waiting."""

from __future__ import annotations

import time
from collections.abc import Callable

# A step of the bench takes far less. A longer one means that this process itself did not run.
LONGEST_STEP_S = 10.0


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
