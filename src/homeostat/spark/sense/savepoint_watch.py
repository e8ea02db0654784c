"""The disk space of the savepoints of each query, read every few minutes."""

from __future__ import annotations

import math
import time
from collections.abc import Callable

from homeostat.checkpoint.savepoint_space import savepoint_space
from homeostat.core.observation import SavepointSample

# A savepoint of a large state has thousands of files, which take a few hundredths of a second to read. People make
# savepoints a few times a day. A choice.
EVERY_S = 300.0


class SavepointWatch:
    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._samples: dict[str, tuple[float, SavepointSample | None]] = {}

    def look(self, location: str) -> SavepointSample | None:
        """The savepoints of the checkpoint at this location, read at most every few minutes; None if unknown, as for an
        empty location."""
        if not location:
            return None
        read_s, sample = self._samples.get(location, (-math.inf, None))
        now_s = self._clock()
        if now_s - read_s >= EVERY_S:
            try:
                sample = savepoint_space(location)
            except OSError:
                sample = None
            self._samples[location] = (now_s, sample)
        return sample
