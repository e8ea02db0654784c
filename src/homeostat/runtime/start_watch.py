"""Reports which queries have not finished a batch since the start, and their activity according to Spark."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Self

# A choice: a query on a warm machine takes less time, and a waiting person wants to know soon.
FIRST_S = 5.0
# A choice: rare enough for a log that is read later, often enough to see that nothing has changed.
LONGEST_S = 300.0


class StartWatch:
    """While it is open, it reports at growing intervals which queries have not finished a batch.

    `waiting` returns these queries and the activity of each. The reports end once there are no such queries.
    """

    def __init__(
        self, waiting: Callable[[], Mapping[str, str]], say: Callable[[str], None], *, first_s: float = FIRST_S
    ) -> None:
        self._waiting, self._say, self._first_s = waiting, say, first_s
        self._closed = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="homeostat start", daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._closed.set()

    def _watch(self) -> None:
        began_s, pause_s = time.monotonic(), self._first_s
        while not self._closed.wait(pause_s):
            try:
                waiting = self._waiting()
            except Exception:  # Spark is stopping or has ended, which others report
                return
            if not waiting:
                return
            for query, activity in waiting.items():
                waited_s = time.monotonic() - began_s
                self._say(f"query {query} has not finished a batch after {waited_s:.0f} s; Spark reports: {activity}")
            pause_s = min(2 * pause_s, LONGEST_S)
