"""Opens a log again whose file was removed, replaced or emptied while it was open."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Callable
from pathlib import Path

from homeostat.store.address import LogAddress, PostgresAddress
from homeostat.store.log_file import file_id, translate_errors
from homeostat.store.opening import open_store
from homeostat.store.sql_database import UnreadableRecord
from homeostat.store.sql_store import SqlStore


def reopen(path: LogAddress, on_unreadable: Callable[[UnreadableRecord], None] | None = None) -> SqlStore:
    """Open the file that is there now, or begin a new one if it was removed or emptied.

    SQLite must not use the files that remain beside the removed file as parts of the new one. Readers that still have
    an emptied file open hold a lock on it, so that the log must begin in another file. Several processes may notice the
    loss at once: only one of them clears the remains, before the new file is there.
    """
    if isinstance(path, PostgresAddress):
        return open_store(path, on_unreadable=on_unreadable)
    with translate_errors(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        directory = os.open(path.parent, os.O_RDONLY)
        try:
            fcntl.flock(directory, fcntl.LOCK_EX)
            if file_id(path) is None:
                for suffix in ("", "-wal", "-shm"):
                    Path(f"{path.resolve()}{suffix}").unlink(missing_ok=True)
            return open_store(path, on_unreadable=on_unreadable)
        finally:
            os.close(directory)
