"""The log in one SQLite file: one process writes, any number read it meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from time import monotonic, sleep
from typing import Any, TypeVar

from homeostat.core.errors import NoLogError, StoreError
from homeostat.core.record_json import JSON
from homeostat.core.records import ACTION, OUTCOME, RECEIPT, OutcomeContent, ReceiptContent, Record, content_of
from homeostat.store.codec import dump, dump_of, load, load_body, mend, split_record
from homeostat.store.protocol import BEGINNING_S, Placed, RunInfo
from homeostat.store.sql import (
    APPLICATION_ID,
    CHAIN,
    COLUMNS,
    GIVES_SPACE_BACK,
    OPEN_INTENTS,
    SCHEMA,
    SCHEMA_VERSION,
    UNJUDGED,
)

BUSY_TIMEOUT_S = 10.0
# A long read lets the write-ahead log grow; afterwards it is cut back to this. A choice.
_WAL_BYTES = 16_000_000
_Result = TypeVar("_Result")

_TROUBLE = {
    "NOTADB": ("this is not a log", "name another file, or move this one away to start a new log"),
    "CORRUPT": ("the log is damaged", "put back a copy, or move it away to start a new one"),
    "CANTOPEN": ("the log cannot be opened", "check that its directory exists and may be written to"),
    "READONLY": ("the log cannot be written", "make the file and its directory writable, or name another"),
    "BUSY": (
        f"another process has kept the log locked for {BUSY_TIMEOUT_S:.0f} s",
        "wait for it or stop it; one process writes a log, others open it read-only",
    ),
    "FULL": ("the disk is full", "make room; what was written before is kept"),
    "IOERR": ("the disk does not let the log be read or written", "check the disk, or name another file"),
}


class SqliteStore:
    """A log file. `read_only` opens one that exists and changes nothing, also while another process writes.

    Used by one thread at a time; threads and processes that work at once open the file each for themselves.
    """

    def __init__(self, path: str | Path, *, read_only: bool = False) -> None:
        self.path = Path(path)
        self._read_only = read_only
        with self._trouble():
            self._connection = _connect(self.path, read_only)
            try:
                self._prepare()
            except BaseException:
                self.close()
                raise

    def append(self, run: str, records: Sequence[Record]) -> None:
        rows = [split_record(record) for record in records]
        if not rows:
            return
        with self._transaction(durable=any(head.kind == ACTION for head, _ in rows)):
            key = self._run_key(run)
            new_records = [head for head, body in rows if self._insert(key, head, body)]
            self._count(key, new_records)

    def get(self, run: str, id: str) -> Record | None:
        records = self._records(f"SELECT {COLUMNS} FROM records WHERE run = :run AND id = :id", run, id=mend(id))
        return records[0] if records else None

    def records(
        self,
        run: str,
        *,
        kinds: Sequence[str] = (),
        component: str = "",
        since_s: float = BEGINNING_S,
        limit: int = 0,
        newest_first: bool = False,
    ) -> list[Record]:
        direction = "DESC" if newest_first else "ASC"
        values: dict[str, str | float] = {"since_s": since_s, "limit": limit if limit > 0 else -1}
        where = "run = :run AND at_s >= :since_s"
        if component:
            where += " AND component = :component"
            values["component"] = component
        # One select per kind, each along its own index, instead of a search through all kinds.
        wheres = []
        for position, kind in enumerate(dict.fromkeys(kinds)):
            wheres.append(f"{where} AND kind = :kind{position}")
            values[f"kind{position}"] = kind
        selects = " UNION ALL ".join(
            f"SELECT * FROM (SELECT number, {COLUMNS} FROM records WHERE {each} "
            f"ORDER BY at_s {direction}, number {direction} LIMIT :limit)"
            for each in wheres or [where]
        )
        order = f"ORDER BY at_s {direction}, number {direction} LIMIT :limit"
        return self._records(f"SELECT {COLUMNS} FROM ({selects}) {order}", run, **values)

    def chain(self, run: str, id: str) -> list[Record]:
        return self._records(CHAIN, run, id=mend(id))

    def open_intents(self, run: str) -> list[Record]:
        return self._records(OPEN_INTENTS, run)

    def unjudged(self, run: str) -> list[Record]:
        return self._records(UNJUDGED, run)

    def save_state(self, run: str, key: str, value: JSON) -> None:
        text = dump_of(value, f"the state {key!r}")
        with self._transaction():
            self._connection.execute(
                "INSERT INTO state VALUES (?, ?, ?) ON CONFLICT (run, key) DO UPDATE SET value = excluded.value",
                (self._run_key(run), mend(key), text),
            )

    def load_state(self, run: str, key: str) -> JSON | None:
        rows = self._rows(
            "SELECT value FROM state JOIN runs USING (run) WHERE name = ? AND key = ?",
            (mend(run), mend(key)),
        )
        with self._trouble():
            return load(rows[0][0]) if rows else None

    def runs(self) -> list[RunInfo]:
        rows = self._rows(
            "SELECT run, name, kind, records, first_s, last_s FROM runs JOIN counts USING (run) ORDER BY run, kind"
        )
        by_run: dict[int, list[Any]] = {}
        for row in rows:
            by_run.setdefault(row[0], []).append(row[1:])
        return [
            RunInfo(
                name=kinds[0][0],
                started_s=min(first_s for *_, first_s, _ in kinds),
                last_s=max(last_s for *_, last_s in kinds),
                counts={kind: records for _, kind, records, *_ in kinds},
            )
            for kinds in by_run.values()
        ]

    def position(self) -> int:
        ((newest,),) = self._rows("SELECT coalesce(max(number), 0) FROM records")
        return int(newest)

    def after(self, position: int, limit: int) -> list[Placed]:
        query = f"SELECT number, name, {COLUMNS} FROM records JOIN runs USING (run)"
        rows = self._rows(f"{query} WHERE number > ? ORDER BY number LIMIT ?", (position, limit))
        placed_records: list[Placed] = []
        for number, run, *row in rows:
            with suppress(ValueError, RecursionError):  # what cannot be read is no news, and holds up none
                placed_records.append(Placed(number, run, _record(row)))
        return placed_records

    def maintain(self, work: Callable[[sqlite3.Connection], _Result], *, in_transaction: bool = True) -> _Result:
        """Do some work on the tables. Errors become a StoreError, as for any other call."""
        with self._transaction() if in_transaction else self._trouble():
            return work(self._connection)

    def close(self) -> None:
        with self._trouble():
            self._connection.close()

    def _prepare(self) -> None:
        if self._is_log():
            if not self._read_only:
                self._write_ahead()
            return
        if self._read_only:
            raise NoLogError("there is no log in this file yet", where=str(self.path), fix="start a run first")
        self._connection.execute(GIVES_SPACE_BACK)  # possible only before anything is written
        self._write_ahead()
        with self._transaction(durable=True):
            if not self._is_log():  # another process may have been quicker
                for statement in SCHEMA.split(";"):
                    self._connection.execute(statement)

    def _is_log(self) -> bool:
        """Whether the file holds a log, as opposed to nothing; anything else is an error."""
        self._connection.execute("SAVEPOINT look")  # all three as of one moment: another may be creating it
        ((application,),) = self._rows("PRAGMA application_id")
        ((version,),) = self._rows("PRAGMA user_version")
        ((tables,),) = self._rows("SELECT count(*) FROM sqlite_master")
        self._connection.execute("RELEASE look")
        if application == APPLICATION_ID:
            if version > SCHEMA_VERSION:
                raise StoreError(
                    f"a newer Homeostat wrote this log (version {version}; this one reads {SCHEMA_VERSION})",
                    where=str(self.path),
                    fix="upgrade homeostat, or name another file",
                )
            return True
        if (application, version, tables) != (0, 0, 0):
            raise NoLogError(
                "this is the database of another program, not a log",
                where=str(self.path),
                fix="name another file",
            )
        return False

    def _write_ahead(self) -> None:
        self._connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
        if self._journal_mode() != "wal":
            raise StoreError(
                "the log cannot be read while it is written here (no write-ahead log)",
                where=str(self.path),
                fix="put it on a local disk",
            )

    def _journal_mode(self) -> str:
        """Ask for WAL. While others do the same SQLite refuses at once, without its usual waiting."""
        give_up_s = monotonic() + BUSY_TIMEOUT_S
        while True:
            try:
                return str(self._connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
            except sqlite3.OperationalError as error:
                if _name(error) != "BUSY" or monotonic() > give_up_s:
                    raise
                sleep(0.01)

    def _insert(self, run: int, head: Record, body: str) -> bool:
        """Add a record, unless the run has its id already."""
        answer = content_of(head.kind, load_body(body)) if head.kind in (RECEIPT, OUTCOME) else None
        action = answer.action if isinstance(answer, ReceiptContent | OutcomeContent) else None
        because = dump(head.because)
        row = (run, head.id, head.kind, head.at_s, head.component, head.text, because, body, action or None)
        added = self._connection.execute(
            "INSERT INTO records (run, id, kind, at_s, component, text, because, body, action) "
            "VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (run, id) DO NOTHING",
            row,
        )
        if not added.rowcount:
            return False
        self._connection.executemany(
            "INSERT INTO links VALUES (?, ?, ?)",
            [(run, parent, head.id) for parent in dict.fromkeys(head.because)],
        )
        return True

    def _count(self, run: int, new_records: Sequence[Record]) -> None:
        times_s: dict[str, list[float]] = {}
        for head in new_records:
            times_s.setdefault(head.kind, []).append(head.at_s)
        self._connection.executemany(
            "INSERT INTO counts VALUES (?, ?, ?, ?, ?) ON CONFLICT (run, kind) DO UPDATE SET "
            "records = records + excluded.records, "
            "first_s = min(first_s, excluded.first_s), last_s = max(last_s, excluded.last_s)",
            [(run, kind, len(each_s), min(each_s), max(each_s)) for kind, each_s in times_s.items()],
        )

    def _run_key(self, run: str) -> int:
        """The number of a run, which is added if it is new."""
        name = (mend(run),)
        self._connection.execute("INSERT INTO runs (name) VALUES (?) ON CONFLICT (name) DO NOTHING", name)
        ((key,),) = self._connection.execute("SELECT run FROM runs WHERE name = ?", name)
        return int(key)

    def _records(self, query: str, run: str, **values: str | float) -> list[Record]:
        keys = self._rows("SELECT run FROM runs WHERE name = ?", (mend(run),))
        if not keys:
            return []
        rows = self._rows(query, {**values, "run": keys[0][0]})
        with self._trouble():
            return [_record(row) for row in rows]

    def _rows(self, query: str, values: Sequence[Any] | dict[str, Any] = ()) -> list[Any]:
        with self._trouble():
            return self._connection.execute(query, values).fetchall()

    @contextmanager
    def _transaction(self, *, durable: bool = False) -> Iterator[None]:
        """All or nothing. A durable one is on the disk, with all before it, when it is over.

        With NORMAL a commit reaches the operating system: it outlives this process, but the last ones may
        be lost with the power. With FULL the commit waits until the disk has it.
        """
        with self._trouble():
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise

    @contextmanager
    def _trouble(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            what, fix = _TROUBLE.get(_name(error), (f"the log cannot be used: {error}", ""))
            kind = NoLogError if _name(error) == "NOTADB" else StoreError
            raise kind(what, where=str(self.path), fix=fix) from error
        except OSError as error:
            what, fix = _TROUBLE["CANTOPEN"]
            raise StoreError(f"{what}: {error.strerror}", where=str(self.path), fix=fix) from error
        except (ValueError, RecursionError) as error:
            raise StoreError(f"the log cannot be read: {error}", where=str(self.path)) from error


def _name(error: sqlite3.Error) -> str:
    """The main part of SQLite's name of the error: BUSY for SQLITE_BUSY_SNAPSHOT."""
    name: str = getattr(error, "sqlite_errorname", "")
    return name.removeprefix("SQLITE_").split("_")[0]


def _connect(path: Path, read_only: bool) -> sqlite3.Connection:
    if path.is_dir():
        raise NoLogError("this is a directory", where=str(path), fix="name a file in it")
    if not read_only:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _open(path, "mode=rwc")
    if not path.exists():
        raise NoLogError("there is no log", where=str(path), fix="check the path, or start a run first")
    connection = _open(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as error:
        connection.close()
        at_rest = not path.with_name(path.name + "-wal").exists()
        if _name(error) in ("CANTOPEN", "READONLY") and at_rest:
            # Readers share a file beside the log; where none can be made, a log at rest is read without it.
            return _open(path, "immutable=1")
        raise
    return connection


def _open(path: Path, how: str) -> sqlite3.Connection:
    return sqlite3.connect(
        f"{path.absolute().as_uri()}?{how}",
        uri=True,
        timeout=BUSY_TIMEOUT_S,
        isolation_level=None,
        check_same_thread=False,
    )


def _record(row: Sequence[Any]) -> Record:
    id, kind, at_s, text, component, because, body = row
    if not isinstance(at_s, float) or any(isinstance(each, bytes) for each in row):
        raise ValueError(f"record {id!r} is none of ours")
    parents = () if because == "[]" else load(because)
    if not isinstance(parents, list | tuple):
        raise ValueError(f"record {id!r} comes from {because[:40]!r}")
    return Record(id, kind, at_s, text, component, tuple(map(str, parents)), load_body(body))
