"""The log of a manager that runs. If its file is removed, replaced or damaged, the manager continues in a new file with
the state that it has in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

from homeostat.core.actions import REVERT
from homeostat.core.errors import DamagedLogError, NoLogError, StoreError
from homeostat.core.record_json import JSON
from homeostat.core.records import ActionContent, OutcomeContent, ReceiptContent, Record
from homeostat.store.address import LogAddress
from homeostat.store.damaged_log import set_aside
from homeostat.store.protocol import Placed, RunInfo
from homeostat.store.reopening import reopen
from homeostat.store.sql_database import Connection, UnreadableRecord, Usage
from homeostat.store.sql_store import SqlStore

_Answer = TypeVar("_Answer")
# How many unreadable records are reported, each by itself. If there are more, the log is broken, and further reports
# would add nothing.
MOST_REPORTED = 20


class KeptLog:
    """A store. `enrol` prepares every file that it opens, and `report` gets a line about every loss."""

    def __init__(self, path: LogAddress, enrol: Callable[[SqlStore], None], report: Callable[[str, str], None]) -> None:
        self.path, self._enrol, self._report = path, enrol, report
        self._states: dict[tuple[str, str], JSON] = {}
        self._open_actions: dict[tuple[str, str], list[Record]] = {}
        self._reported_ids: set[tuple[str, str]] = set()
        self._store = self._first_opened()

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

    def maintain(self, work: Callable[[Connection], _Answer], *, in_transaction: bool = True) -> _Answer:
        return self._ask(lambda store: store.maintain(work, in_transaction=in_transaction))

    def usage(self) -> Usage:
        return self._ask(lambda store: store.usage())

    def shrink(self, pages: int = 0) -> None:
        self._ask(lambda store: store.shrink(pages))

    def close(self) -> None:
        self._store.close()

    def _ask(self, question: Callable[[SqlStore], _Answer]) -> _Answer:
        if not self._store.in_place:
            self._begin_again("its file was removed, replaced or emptied; earlier records may be lost")
        try:
            return question(self._store)
        except (DamagedLogError, NoLogError):
            self._begin_again(self._set_aside())
            return question(self._store)

    def _set_aside(self) -> str:
        if isinstance(self.path, Path):
            return f"its file was damaged; earlier records are in {set_aside(self.path)}"
        return "its tables were removed; earlier records may be lost"

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

    def _first_opened(self) -> SqlStore:
        try:
            return self._opened()
        except DamagedLogError:
            if not isinstance(self.path, Path):
                raise
            self._report("the log", damaged_at_start(set_aside(self.path)))
            return self._opened()

    def _opened(self) -> SqlStore:
        store = reopen(self.path, self._unreadable)
        try:
            self._enrol(store)
        except BaseException:
            store.close()
            raise
        return store

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


def damaged_at_start(aside: Path) -> str:
    return f"its file was damaged when the manager started; earlier records are in {aside}, and a new log begins"


def _is_judged(action: Record) -> bool:
    content = action.content_as(ActionContent)
    return content is not None and content.prediction is not None and content.action_kind != REVERT
