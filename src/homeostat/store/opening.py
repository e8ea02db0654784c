"""Opens a log by its address."""

from __future__ import annotations

from collections.abc import Callable

from homeostat.store.address import LogAddress, PostgresAddress
from homeostat.store.postgres import PostgresStore
from homeostat.store.sql_database import UnreadableRecord
from homeostat.store.sql_store import SqlStore
from homeostat.store.sqlite import SqliteStore


def open_store(
    log: LogAddress,
    *,
    read_only: bool = False,
    guest: bool = False,
    on_unreadable: Callable[[UnreadableRecord], None] | None = None,
) -> SqlStore:
    """`read_only` opens a log that exists and changes nothing. `guest` is for a process that manages none of the runs:
    it writes only to runs that the log has."""
    if isinstance(log, PostgresAddress):
        return PostgresStore(log, read_only=read_only, guest=guest, on_unreadable=on_unreadable)
    return SqliteStore(log, read_only=read_only, guest=guest, on_unreadable=on_unreadable)


def identity_of_file(log: LogAddress) -> tuple[int, int] | None:
    """Which file the log is now; None if there is none. A database stays the same."""
    if isinstance(log, PostgresAddress):
        return 0, 0
    try:
        status = log.stat()
    except OSError:
        return None
    return status.st_dev, status.st_ino
