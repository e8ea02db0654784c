"""The log in one SQLite file: one process writes, any number read it meanwhile."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from homeostat.core.errors import NoLogError
from homeostat.store.log_file import connect, file_id, log_version, translate_errors, write_ahead
from homeostat.store.migrations import SCHEMA_VERSION, create, migrate
from homeostat.store.sql import APPLICATION_ID, GIVES_SPACE_BACK
from homeostat.store.sql_database import UnreadableRecord, Usage
from homeostat.store.sql_store import SqlStore

_EMPTY_WAL = "PRAGMA wal_checkpoint(TRUNCATE)"


class SqliteStore(SqlStore):
    """A log file. `read_only` opens one that exists and changes nothing, also while another process writes."""

    def __init__(
        self,
        path: str | Path,
        *,
        read_only: bool = False,
        guest: bool = False,
        on_unreadable: Callable[[UnreadableRecord], None] | None = None,
    ) -> None:
        self.path = Path(path)
        super().__init__(self.path, guest=guest, on_unreadable=on_unreadable)
        self._read_only = read_only
        with translate_errors(self.path):
            self._connection = connect(self.path, read_only, create=not guest)
            try:
                self._prepare()
                self._file_id = file_id(self.path)
            except BaseException:
                self.close()
                raise

    @property
    def _database(self) -> sqlite3.Connection:
        return self._connection

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        with translate_errors(self.path):
            yield

    def close(self) -> None:
        with translate_errors(self.path):
            self._connection.close()

    @property
    def in_place(self) -> bool:
        """Whether the path still leads to the file that was opened. If not, what is written is lost."""
        return self._file_id is not None and file_id(self.path) == self._file_id

    def usage(self) -> Usage:
        """The files on the disk, and the records without the pages that are free for new ones."""
        beside = [self.path, *(self.path.with_name(self.path.name + suffix) for suffix in ("-wal", "-shm"))]
        file_bytes = sum(file.stat().st_size for file in beside if file.exists())
        names = ("page_count", "freelist_count", "page_size")
        pages, free_pages, page_bytes = (int(self.rows(f"PRAGMA {name}")[0][0]) for name in names)
        return Usage(file_bytes, (pages - free_pages) * page_bytes)

    def shrink(self, pages: int = 0) -> None:
        # A script, because a single statement frees a single page.
        self._run_script(f"PRAGMA incremental_vacuum({pages})" + ("" if pages else f"; {_EMPTY_WAL}"))

    def compact(self) -> None:
        """It needs as much free space on the disk as the file has."""
        self._run_script(f"{GIVES_SPACE_BACK}; VACUUM; {_EMPTY_WAL}")

    def _run_script(self, script: str) -> None:
        with translate_errors(self.path):
            self._connection.executescript(script)

    def _prepare(self) -> None:
        version = log_version(self._connection, self.path)
        if self._read_only:
            self._require_log(version)
            return
        if self._guest:
            self._require_log(version)
        if not version:
            self._connection.execute(GIVES_SPACE_BACK)  # possible only before anything is written
        write_ahead(self._connection, self.path)
        if version == SCHEMA_VERSION:
            return
        with self.transaction(durable=True) as connection:
            version = log_version(self._connection, self.path)  # another process may have been quicker
            if version:
                migrate(connection, version)
            else:
                create(connection)
                connection.execute(f"PRAGMA application_id = {APPLICATION_ID}")
            connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")

    def _require_log(self, version: int) -> None:
        if not version:
            raise NoLogError("the file has no log yet", where=self.where, fix="start a run first")

    @contextmanager
    def transaction(self, *, durable: bool = False, fenced: bool = False) -> Iterator[sqlite3.Connection]:
        """With NORMAL a commit reaches the operating system: it outlives this process, but the last ones may
        be lost with the power. With FULL the commit waits until the disk has it.
        """
        with translate_errors(self.path):
            self._connection.execute(f"PRAGMA synchronous = {'FULL' if durable else 'NORMAL'}")
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                if fenced:
                    self._require_ours()
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:
                    self._connection.execute("ROLLBACK")
                raise
