"""When to restart a query that failed: after pauses that double, and not too often."""

from __future__ import annotations

from collections import deque

# Failures that a query may have within the time below. A choice. The pauses before ten restarts add up to 303 s. So a
# query that keeps failing at once needs a person after five minutes, and so does one that fails every few minutes.
MOST_FAILURES = 10
WITHIN_S = 3600.0
# A choice: long enough to spare a broken system, short enough to be back soon after it recovers.
LONGEST_PAUSE_S = 60.0
# How long a query must finish batches before its next failure counts as the first one. A choice, far longer than the
# longest pause: a query that does one batch after each restart is not healthy.
HEALTHY_S = 600.0


class Retries:
    """Failures of a query. `gave_up` is why the query will not be restarted; empty while it may be.

    All times come from the monotonic clock.
    """

    def __init__(self) -> None:
        self.gave_up = ""
        self._failures_s: deque[float] = deque(maxlen=MOST_FAILURES + 1)
        self._in_a_row = 0
        self._next_s: float | None = None
        self._works_since_s: float | None = None

    @property
    def is_planned(self) -> bool:
        return self._next_s is not None

    def plan(self, reason: str, now_s: float) -> str:
        """Plan the next restart after a failure. Returns a sentence for the log."""
        self._works_since_s = None
        self._failures_s.append(now_s)
        self._in_a_row += 1
        if len(self._failures_s) > MOST_FAILURES and now_s - self._failures_s[0] < WITHIN_S:
            self.gave_up = reason
            minutes = WITHIN_S / 60
            return (
                f"the query failed {MOST_FAILURES} times within {minutes:.0f} min and will not be restarted: {reason}"
            )
        pause_s = min(LONGEST_PAUSE_S, 2.0 ** min(self._in_a_row - 1, MOST_FAILURES))
        self._next_s = now_s + pause_s
        return f"the query failed and restarts in {pause_s:g} s: {reason}"

    def due(self, now_s: float) -> bool:
        return self._next_s is not None and now_s >= self._next_s

    def note_start(self) -> None:
        """The query was started; nothing is planned any more."""
        self._next_s = None

    def note_batch(self, now_s: float) -> None:
        """The query runs and has finished a batch. If this continues for a while, the pauses start again from the
        shortest one.
        """
        if self._works_since_s is None:
            self._works_since_s = now_s
        elif now_s - self._works_since_s >= HEALTHY_S:
            self._in_a_row = 0
