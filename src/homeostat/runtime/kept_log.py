"""The log of a manager that runs. If its file is removed, replaced or damaged, the manager continues in a new file with
the state that it has in memory.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import suppress
from glob import escape
from pathlib import Path
from typing import Any, TypeVar

from homeostat.core.actions import REVERT
from homeostat.core.errors import DamagedLogError, NoLogError, StoreError
from homeostat.core.record_json import JSON
from homeostat.core.records import ActionContent, OutcomeContent, ReceiptContent, Record
from homeostat.store.protocol import Placed, RunInfo
from homeostat.store.reopening import reopen
from homeostat.store.sqlite import SqliteStore, UnreadableRecord

_Answer = TypeVar("_Answer")
# Unreadable records that are reported one by one. If there are more, the log is broken, and one line is enough to say
# so.
MOST_REPORTED = 20
# Damaged files that are kept: enough to look into what damages them, and a bound on the disk. A choice.
MOST_DAMAGED_FILES = 3
_BESIDE_THE_FILE = ("", "-wal", "-shm")


class KeptLog:
    """A store. `enrol` prepares every file that it opens, and `report` gets a line about every loss."""

    def __init__(self, path: Path, enrol: Callable[[SqliteStore], None], report: Callable[[str, str], None]) -> None:
        self.path, self._enrol, self._report = path, enrol, report
        self._states: dict[tuple[str, str], JSON] = {}
        self._open_actions: dict[tuple[str, str], list[Record]] = {}
        self._reported_ids: set[tuple[str, str]] = set()
        self._store = self._opened()

    def append(self, run: str, records: Sequence[Record]) -> None:
        self._ask(lambda store: store.append(run, records))
        for record in records:
            self._remember(run, record)

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self._ask(lambda store: store.save_state(run, key, value))
        self._states[run, key] = value

    def load_state(self, run: str, key: str) -> JSON | None:
        value = self._ask(lambda store: store.load_state(run, key))
        if value is not None:
            self._states[run, key] = value
        return value

    def set_aside(self, run: str, key: str) -> None:
        self._ask(lambda store: store.set_aside(run, key))
        self._states.pop((run, key), None)

    def get(self, run: str, id: str) -> Record | None:
        return self._ask(lambda store: store.get(run, id))

    def records(self, run: str, **filters: Any) -> list[Record]:
        return self._ask(lambda store: store.records(run, **filters))

    def ids(self, run: str, kinds: Sequence[str]) -> list[str]:
        return self._ask(lambda store: store.ids(run, kinds))

    def chain(self, run: str, id: str) -> list[Record]:
        return self._ask(lambda store: store.chain(run, id))

    def open_intents(self, run: str) -> list[Record]:
        return self._ask(lambda store: store.open_intents(run))

    def unjudged(self, run: str) -> list[Record]:
        return self._ask(lambda store: store.unjudged(run))

    def runs(self) -> list[RunInfo]:
        return self._ask(lambda store: store.runs())

    def position(self) -> int:
        return self._ask(lambda store: store.position())

    def after(self, position: int, limit: int) -> list[Placed]:
        return self._ask(lambda store: store.after(position, limit))

    def maintain(self, work: Callable[[sqlite3.Connection], _Answer], *, in_transaction: bool = True) -> _Answer:
        return self._ask(lambda store: store.maintain(work, in_transaction=in_transaction))

    def close(self) -> None:
        self._store.close()

    def _ask(self, question: Callable[[SqliteStore], _Answer]) -> _Answer:
        if not self._store.in_place:
            self._begin_again("its file was removed, replaced or emptied; earlier records may be lost")
        try:
            return question(self._store)
        except (DamagedLogError, NoLogError):
            aside = self._move_aside()
            self._begin_again(f"its file was damaged; earlier records are in {aside}")
            return question(self._store)

    def _begin_again(self, reason: str) -> None:
        with suppress(StoreError):
            self._store.close()
        store = self._opened()
        try:
            for (run, key), value in self._states.items():
                store.save_state(run, key, value)
            for (run, _), records in self._open_actions.items():
                store.append(run, records)
        except BaseException:
            store.close()
            raise
        self._store = store
        self._report("the log", f"{reason}; the manager continues with a new log in {self.path}")

    def _opened(self) -> SqliteStore:
        store = reopen(self.path, self._unreadable)
        try:
            self._enrol(store)
        except BaseException:
            store.close()
            raise
        return store

    def _move_aside(self) -> Path:
        """Beside the log, where only the newest damaged files stay."""
        numbers = self._damaged_files()
        aside = self._damaged_file(max(numbers, default=0) + 1)
        self._each_file(self.path, lambda file, suffix: file.rename(aside.with_name(aside.name + suffix)))
        for number in numbers[: len(numbers) + 1 - MOST_DAMAGED_FILES]:
            self._each_file(self._damaged_file(number), lambda file, suffix: file.unlink())
        return aside

    def _damaged_files(self) -> list[int]:
        """Their numbers, the oldest first."""
        endings = (
            file.name.rpartition("-")[2] for file in self.path.parent.glob(f"{escape(self.path.name)}.damaged-*")
        )
        return sorted({int(ending) for ending in endings if ending.isdecimal()})

    def _damaged_file(self, number: int) -> Path:
        return self.path.with_name(f"{self.path.name}.damaged-{number}")

    @staticmethod
    def _each_file(log: Path, work: Callable[[Path, str], object]) -> None:
        """The file of a log, and those that SQLite keeps beside it."""
        for suffix in _BESIDE_THE_FILE:
            with suppress(FileNotFoundError):
                work(log.with_name(log.name + suffix), suffix)

    def _remember(self, run: str, record: Record) -> None:
        """Actions that are under way or not judged yet: after a crash, a new manager must find them."""
        content = record.content
        if isinstance(content, ActionContent):
            self._open_actions[run, record.id] = [record]
        elif isinstance(content, ReceiptContent | OutcomeContent):
            records = self._open_actions.pop((run, content.action), [])
            if records and isinstance(content, ReceiptContent) and content.applied and _is_judged(records[0]):
                self._open_actions[run, content.action] = [*records, record]

    def _unreadable(self, record: UnreadableRecord) -> None:
        key = (record.run, record.id)
        if key in self._reported_ids or len(self._reported_ids) >= MOST_REPORTED:
            return
        self._reported_ids.add(key)
        self._report("reading the log", f"{record.kind} {record.id} cannot be read and is skipped: {record.reason}")


def _is_judged(action: Record) -> bool:
    content = action.content_as(ActionContent)
    return content is not None and content.prediction is not None and content.action_kind != REVERT
