"""Splits the event log of an application into one log for each of its queries."""

from __future__ import annotations

import json
import time
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from homeostat.lab.corpus.shrinking import LINE_STARTS, LOG_START
from homeostat.spark.outside import event_log

Event = dict[str, Any]

_ONCE = (LOG_START, event_log.APPLICATION_START, event_log.ENVIRONMENT)
_ARRIVALS = (event_log.EXECUTOR_ADDED, event_log.BLOCK_MANAGER_ADDED)
WRITTEN_S = 60.0  # Spark writes an event within moments, even on a busy machine
LOOK_AGAIN_S = 0.2


class Cutter:
    """Takes the events of an application in their order. `runs` has those of each query that has begun."""

    def __init__(self) -> None:
        self.runs: dict[str, list[Event]] = {}
        self.ended: set[str] = set()
        self._whole: list[Event] = []
        self._living: dict[str, list[Event]] = {}
        self._current = ""

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            self._take(event)

    def _take(self, event: Event) -> None:
        """Take an event. The log of a query begins with the events that show which executors the application has at its
        start."""
        kind = event["Event"]
        if kind == event_log.QUERY_STARTED:
            self._current = str(event["runId"])
            present = [each for mine in self._living.values() for each in mine]
            self.runs[self._current] = [*self._whole, *present]
        if self._current:
            self.runs[self._current].append(event)
        if kind in _ONCE:
            self._whole.append(event)
        elif kind in _ARRIVALS:
            self._living.setdefault(_executor(event), []).append(event)
        elif kind == event_log.EXECUTOR_REMOVED:
            self._living.pop(_executor(event), None)
        elif kind == event_log.QUERY_TERMINATED:
            self.ended.add(str(event["runId"]))
            self._current = ""


class SessionLog:
    """Follows the only log in a directory, which Spark writes as one plain file."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._cutter = Cutter()
        self._read_bytes = 0

    def events_of(self, run: str) -> list[Event]:
        """The events of a query that has ended, once they are written."""
        deadline = time.monotonic() + WRITTEN_S
        while run not in self._cutter.ended and time.monotonic() < deadline:
            self._cutter.take(self._new_events())
            time.sleep(LOOK_AGAIN_S)
        return self._cutter.runs.pop(run)

    def _new_events(self) -> Iterator[Event]:
        (log,) = self._directory.iterdir()
        with log.open("rb") as lines:
            lines.seek(self._read_bytes)
            for line in lines:
                if not line.endswith(b"\n"):
                    return
                self._read_bytes += len(line)
                if line.startswith(LINE_STARTS):
                    yield json.loads(line)


def _executor(event: Event) -> str:
    return str(event["Executor ID"] if "Executor ID" in event else event["Block Manager ID"]["Executor ID"])
