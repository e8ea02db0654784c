"""Work that is retried until it succeeds, such as reporting a change to the loop."""

from __future__ import annotations

import time
from collections.abc import Callable

from homeostat.core.events import Event, Failure
from homeostat.spark_errors import first_line


class UndoneWork:
    """Remembers what failed until a retry succeeds. The failure is reported once."""

    def __init__(self, emit: Callable[[Event], None]) -> None:
        self._emit = emit
        self._undone: dict[str, Callable[[], None]] = {}

    def do(self, what: str, work: Callable[[], None]) -> None:
        """Newer work replaces older work of the same name."""
        self._undone[what] = work
        error = self._attempt(what)
        if error is not None:
            self._emit(Failure(what, first_line(error), time.time()))

    def retry(self) -> None:
        for what in list(self._undone):
            self._attempt(what)

    def _attempt(self, what: str) -> Exception | None:
        work = self._undone.pop(what, None)
        if work is None:  # another thread is doing it
            return None
        try:
            work()
        except Exception as error:
            self._undone.setdefault(what, work)
            return error
        return None
