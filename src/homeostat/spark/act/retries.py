"""When to restart a query that failed: after pauses that double, and not for ever."""

from __future__ import annotations

# A choice. The pauses before ten restarts add up to 303 s: a query that fails for longer than five minutes needs a
# person.
MOST_FAILURES = 10
# A choice: long enough to spare a broken system, short enough to be back soon after it recovers.
LONGEST_PAUSE_S = 60.0


class Retries:
    """Failures in a row. `gave_up` is why the query will not be restarted; empty while it may be."""

    def __init__(self) -> None:
        self.gave_up = ""
        self._failures = 0
        self._next_s: float | None = None

    @property
    def is_planned(self) -> bool:
        return self._next_s is not None

    def plan(self, reason: str, now_s: float) -> str:
        """Plan the next restart after a failure. Returns a sentence for the log."""
        self._failures += 1
        if self._failures > MOST_FAILURES:
            self.gave_up = reason
            return f"the query failed {MOST_FAILURES} times in a row and will not be restarted: {reason}"
        pause_s = min(LONGEST_PAUSE_S, 2.0 ** (self._failures - 1))
        self._next_s = now_s + pause_s
        return f"the query failed and restarts in {pause_s:g} s: {reason}"

    def due(self, now_s: float) -> bool:
        return self._next_s is not None and now_s >= self._next_s

    def note_start(self) -> None:
        """The query was started; nothing is planned any more."""
        self._next_s = None

    def note_batch(self) -> None:
        """The query finished a batch: earlier failures no longer count."""
        self._failures = 0
