"""Alerts that no cycle of the loop can send, because the loop, the query or the driver has ended.

Each goes to the terminal, and into the log of every query that it concerns. From there it reaches `homeostat log`, the
dashboard and the webhook, like every other alert. It ends when a manager starts again.
"""

from __future__ import annotations

import time
import uuid
from collections.abc import Callable, Iterable

from homeostat.core.causes import cause_of
from homeostat.core.records import AlertContent, Record
from homeostat.store.sql_store import SqlStore


class Alarm:
    """`runs` are the queries in whose logs the alerts appear. `open_log` opens the log so that nothing is written once
    another manager has taken over."""

    def __init__(self, open_log: Callable[[], SqlStore], runs: Iterable[str], say: Callable[[str], None]) -> None:
        self._open_log, self._runs, self._say = open_log, tuple(runs), say

    def ring(self, cause: str, details: str) -> None:
        """Alert a person. An error of the log is part of the message, and never raised."""
        entry = cause_of(cause)
        text = f"{entry.title} ({details}). What to do: {entry.advice}."
        self._say(text)
        # The counters of the loop are not used for these ids, so that two processes never assign the same one.
        record = Record.of(f"t-{uuid.uuid4().hex[:12]}", time.time(), AlertContent(cause), text)
        try:
            store = self._open_log()
            try:
                for run in self._runs:
                    store.append(run, [record])
            finally:
                store.close()
        except Exception as error:
            self._say(f"the alert is not in the log: {type(error).__name__}: {error}")
