"""Follows a log that another process writes: returns every record once, soon after it was written."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.errors import StoreError
from homeostat.core.records import Record
from homeostat.store.address import LogAddress, is_missing
from homeostat.store.opening import open_store
from homeostat.store.protocol import BEGINNING_S
from homeostat.store.sql_store import SqlStore

# A batch is recorded with the time at which it ended, which may lie before records that are already there.
OVERLAP_S = 60.0


class Follower:
    """If another log replaces this one, as a file of its own or in the same file, it continues with that log from its
    beginning."""

    def __init__(self, log: LogAddress, run: str) -> None:
        self._log, self._run = log, run
        self._store: SqlStore | None = None
        self._known_times_s: dict[str, float] = {}
        self._newest_s = BEGINNING_S
        self._position = 0
        self._file, self._last_write = (0, 0), (0, 0)

    def new(self) -> list[Record]:
        """The records since the last call, by time; none while there is no log or while it is locked."""
        try:
            if is_missing(self._log):
                return []  # the old file stays open, so that no other one gets its number
            self._look_at_the_file()
            if self._store is None:
                self._store = open_store(self._log, read_only=True)
            position = self._store.position()
            if position < self._position:
                self._newest_s = BEGINNING_S
            self._position = position
            records = self._store.records(self._run, since_s=self._newest_s - OVERLAP_S)
        except (StoreError, OSError):
            return []
        fresh = [record for record in records if self._known_times_s.get(record.id) != record.at_s]
        self._newest_s = max([self._newest_s, *(record.at_s for record in fresh)])
        # Older ones are not read again.
        times_s = self._known_times_s | {record.id: record.at_s for record in fresh}
        self._known_times_s = {id: at_s for id, at_s in times_s.items() if at_s >= self._newest_s - OVERLAP_S}
        return fresh

    def _look_at_the_file(self) -> None:
        """SQLite notices neither another file at this place nor one that was written without it: opens it again."""
        if not isinstance(self._log, Path):
            return
        status = self._log.stat()
        file, last_write = (status.st_dev, status.st_ino), (status.st_mtime_ns, status.st_size)
        if (file, last_write) != (self._file, self._last_write):
            self.close()
        if file != self._file:
            self._newest_s, self._position = BEGINNING_S, 0
        self._file, self._last_write = file, last_write

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
