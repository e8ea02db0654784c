"""The file of a log: how it is opened, and what its errors mean."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from time import monotonic, sleep

from homeostat.core.errors import DamagedLogError, NewerLogError, NoLogError, StoreError, UnreadableError
from homeostat.store.migrations import SCHEMA_VERSION
from homeostat.store.sql import APPLICATION_ID

BUSY_TIMEOUT_S = 10.0
# A long read lets the write-ahead log grow; afterwards it is cut back to this. A choice.
_WAL_BYTES = 16_000_000

_TROUBLE = {
    "NOTADB": ("this is not a Homeostat log", "use another file, or move this one away to start a new log"),
    "CORRUPT": ("the log is damaged", "restore it from a backup, or move it away to start a new log"),
    "CANTOPEN": ("the log cannot be opened", "check that its directory exists and may be written to"),
    "READONLY": ("the log cannot be written", "make the file and its directory writable, or use another file"),
    "BUSY": (
        f"another process has kept the log locked for {BUSY_TIMEOUT_S:.0f} s",
        "wait for that process or stop it; only one process can write to a log at a time",
    ),
    "FULL": ("the disk is full", "free some space; everything written before is intact"),
    "IOERR": ("the disk reports an error for the log", "check the disk, or use another file"),
}


@contextmanager
def translate_errors(path: Path) -> Iterator[None]:
    """Turn every error of SQLite or of the file into a StoreError that says what to do."""
    try:
        yield
    except sqlite3.Error as error:
        what, fix = _TROUBLE.get(error_name(error), (f"the log cannot be used: {error}", ""))
        raise _kind(error)(what, where=str(path), fix=fix) from error
    except OSError as error:
        what, fix = _TROUBLE["CANTOPEN"]
        raise StoreError(f"{what}: {error.strerror}", where=str(path), fix=fix) from error
    except (ValueError, RecursionError) as error:
        raise UnreadableError(f"the log cannot be read: {error}", where=str(path)) from error


def _kind(error: sqlite3.Error) -> type[StoreError]:
    if error_name(error) == "NOTADB":
        return NoLogError
    # A file that was cut to nothing while it was open looks like an empty database.
    damaged = error_name(error) == "CORRUPT" or str(error).startswith("no such table")
    return DamagedLogError if damaged else StoreError


def error_name(error: sqlite3.Error) -> str:
    """The main part of SQLite's name of the error: BUSY for SQLITE_BUSY_SNAPSHOT."""
    name: str = getattr(error, "sqlite_errorname", "")
    return name.removeprefix("SQLITE_").split("_")[0]


def connect(path: Path, read_only: bool, *, create: bool = True) -> sqlite3.Connection:
    if path.is_dir():
        raise NoLogError("this is a directory", where=str(path), fix="give a file in it")
    if not read_only and create:
        path.parent.mkdir(parents=True, exist_ok=True)
        return _open(path, "mode=rwc")
    if not path.exists():
        raise NoLogError("there is no log", where=str(path), fix="check the path, or start a run first")
    if not read_only:
        return _open(path, "mode=rw")
    connection = _open(path, "mode=ro")
    try:
        connection.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error as error:
        connection.close()
        at_rest = not path.with_name(path.name + "-wal").exists()
        if error_name(error) in ("CANTOPEN", "READONLY") and at_rest:
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


def file_id(path: Path) -> tuple[int, int] | None:
    """Which file the path leads to; None if there is none, or nothing in it."""
    try:
        status = path.stat()
    except OSError:
        return None
    return (status.st_dev, status.st_ino) if status.st_size else None


def write_ahead(connection: sqlite3.Connection, path: Path) -> None:
    """Let others read while one process writes. A StoreError where the file system does not allow it."""
    connection.execute(f"PRAGMA journal_size_limit = {_WAL_BYTES}")
    if _journal_mode(connection) != "wal":
        raise StoreError(
            "this file system does not support the write-ahead log of SQLite",
            where=str(path),
            fix="put the log on a local disk",
        )


def _journal_mode(connection: sqlite3.Connection) -> str:
    """Switch to WAL. While other processes do the same, SQLite refuses at once, without its usual waiting."""
    give_up_s = monotonic() + BUSY_TIMEOUT_S
    while True:
        try:
            return str(connection.execute("PRAGMA journal_mode = WAL").fetchone()[0])
        except sqlite3.OperationalError as error:
            if error_name(error) != "BUSY" or monotonic() > give_up_s:
                raise
            sleep(0.01)


def log_version(connection: sqlite3.Connection, path: Path) -> int:
    """The version of the log in the file; 0 if there is nothing in it. Anything else is an error."""
    connection.execute(
        "SAVEPOINT look"
    )  # all three at the same moment, because another process may be creating the log
    ((application,),) = connection.execute("PRAGMA application_id")
    ((version,),) = connection.execute("PRAGMA user_version")
    ((tables,),) = connection.execute("SELECT count(*) FROM sqlite_master")
    connection.execute("RELEASE look")
    if application == APPLICATION_ID:
        if version > SCHEMA_VERSION:
            raise NewerLogError(
                f"a newer Homeostat wrote this log (version {version}; this one reads {SCHEMA_VERSION})",
                where=str(path),
                fix="upgrade homeostat, or use another file",
            )
        return int(version)
    if (application, version, tables) != (0, 0, 0):
        raise NoLogError("this is the database of another program, not a log", where=str(path), fix="name another file")
    return 0
