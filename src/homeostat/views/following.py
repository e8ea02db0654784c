"""Follows a log that another process writes: returns every record once, soon after it was written."""

from __future__ import annotations

from pathlib import Path

from homeostat.core.errors import StoreError
from homeostat.core.records import Record
from homeostat.store.protocol import BEGINNING_S
from homeostat.store.sqlite import SqliteStore

# A batch is recorded with the time at which it ended, which may lie before records that are already there.
OVERLAP_S = 60.0


class Follower:
    """If another file replaces the log, it continues with that file from its beginning."""

    def __init__(self, log: Path, run: str) -> None:
        self._log, self._run = log, run
        self._store: SqliteStore | None = None
        self._known_times_s: dict[str, float] = {}
        self._newest_s = BEGINNING_S

    def new(self) -> list[Record]:
        """The records since the last call, by time; none while there is no log or while it is locked."""
        try:
            if self._store is not None and not self._store.in_place:
                self.close()
                self._newest_s = BEGINNING_S
            if self._store is None:
                if not self._log.exists():
                    return []
                self._store = SqliteStore(self._log, read_only=True)
            records = self._store.records(self._run, since_s=self._newest_s - OVERLAP_S)
        except StoreError:
            return []
        fresh = [record for record in records if self._known_times_s.get(record.id) != record.at_s]
        self._newest_s = max([self._newest_s, *(record.at_s for record in fresh)])
        # Older ones are not read again.
        times_s = self._known_times_s | {record.id: record.at_s for record in fresh}
        self._known_times_s = {id: at_s for id, at_s in times_s.items() if at_s >= self._newest_s - OVERLAP_S}
        return fresh

    def close(self) -> None:
        if self._store is not None:
            self._store.close()
            self._store = None
