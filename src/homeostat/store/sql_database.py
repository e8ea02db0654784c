"""A log as tables in an SQL database: its connection, its transactions, its upkeep, and the fence around its runs."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any, Protocol, TypeVar

from homeostat.core.errors import LeaseLostError, StoreError
from homeostat.store.address import LogAddress
from homeostat.store.codec import mend

_Result = TypeVar("_Result")


class Cursor(Protocol):
    """The part of a DB-API cursor that the stores use."""

    @property
    def rowcount(self) -> int: ...

    def fetchall(self) -> list[Any]: ...

    def fetchone(self) -> Any: ...


class Connection(Protocol):
    """A connection to a database. The queries have placeholders as in SQLite: `?` and `:name`."""

    def execute(self, query: str, values: Sequence[Any] | dict[str, Any] = (), /) -> Cursor: ...

    def executemany(self, query: str, rows: Iterable[Sequence[Any] | dict[str, Any]], /) -> Cursor: ...


@dataclass(frozen=True, slots=True)
class Usage:
    """The size of a log: what it takes on the disk, and what the records in it take."""

    file_bytes: int
    used_bytes: int


@dataclass(frozen=True, slots=True)
class UnreadableRecord:
    """A row of the log that is not what Homeostat writes."""

    run: str
    id: str
    kind: str
    reason: str


class SqlDatabase(ABC):
    """The tables of a log. A subclass opens them, and says how a transaction begins and what an error means.

    `guest` is for a process that manages none of the runs: it writes only to runs
    that the log has. Records that cannot be read are an error, or are left out and passed to `on_unreadable`.
    """

    def __init__(
        self, log: LogAddress, *, guest: bool, on_unreadable: Callable[[UnreadableRecord], None] | None
    ) -> None:
        self.log = log
        self.where = str(log)
        self._guest, self._on_unreadable = guest, on_unreadable
        self._fence: tuple[str, str] | None = None

    @abstractmethod
    def transaction(self, *, durable: bool = False, fenced: bool = False) -> AbstractContextManager[Connection]:
        """All or nothing. A durable one survives a loss of power, with all before it, when it is over. A fenced one is
        refused once another manager holds the application. Only one process at a time is in a transaction."""

    @property
    @abstractmethod
    def in_place(self) -> bool:
        """Whether what is written reaches the log that was opened."""

    @abstractmethod
    def usage(self) -> Usage: ...

    @abstractmethod
    def shrink(self, pages: int = 0) -> None:
        """Give unused space back to the disk, at most so many pages of it; 0 means all."""

    @abstractmethod
    def compact(self) -> None:
        """Rewrite the log without unused space."""

    @abstractmethod
    def close(self) -> None: ...

    @property
    @abstractmethod
    def _database(self) -> Connection: ...

    @abstractmethod
    def _translated_errors(self) -> AbstractContextManager[None]:
        """Turns every error of the database into a StoreError that says what to do."""

    def rows(self, query: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        with self._translated_errors():
            return self._database.execute(query, values).fetchall()

    def maintain(self, work: Callable[[Connection], _Result], *, in_transaction: bool = True) -> _Result:
        """Do some work on the tables. Errors become a StoreError, as for any other call."""
        with self.transaction() if in_transaction else self._translated_errors():
            return work(self._database)

    def fence(self, identity: str, token: str) -> None:
        """From now on, write records and state only while this token holds the application."""
        self._fence = (identity, token)

    def _require_ours(self) -> None:
        if self._fence is None:
            return
        ours = "SELECT 1 FROM applications WHERE identity = ? AND token = ?"
        if not self._database.execute(ours, self._fence).fetchall():
            raise LeaseLostError("another manager has taken over this application", where=self.where)

    def run_key(self, run: str) -> int:
        """The number of a run, which is added if it is new."""
        keys = self._run_keys(run)
        if not keys and not self._guest:
            self._database.execute("INSERT INTO runs (name) VALUES (?) ON CONFLICT (name) DO NOTHING", (mend(run),))
            keys = self._run_keys(run)
        if not keys:
            raise StoreError(f"the log has no run {run!r}", where=self.where, fix="another log has replaced it")
        return keys[0]

    def _run_keys(self, run: str) -> list[int]:
        rows = self._database.execute("SELECT run FROM runs WHERE name = ?", (mend(run),)).fetchall()
        return [int(key) for (key,) in rows]
