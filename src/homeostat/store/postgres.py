"""The log in a PostgreSQL database: managers on many machines write to it, and one dashboard shows all of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from homeostat.core.errors import NewerLogError, NoLogError
from homeostat.core.records import RECEIPT, ReceiptContent, Record, content_of
from homeostat.store.address import LogAddress, PostgresAddress, log_address
from homeostat.store.codec import load_body, mend
from homeostat.store.migrations import SCHEMA_VERSION, create, migrate
from homeostat.store.postgres_connection import LOCK_WAIT_S, PostgresConnection, translate_errors
from homeostat.store.sql import ANSWERED_UNJUDGED, APPLICATION_ID, RECEIPTS
from homeostat.store.sql_database import UnreadableRecord, Usage
from homeostat.store.sql_store import SqlStore

# A table with one row: the version of the log. It is also what a writer locks.
_VERSION = "homeostat_log"
TABLES = ("applications", "counts", "links", "records", "runs", "state")
# Bytes of a record are measured on this many of the newest ones. A choice: it takes a few milliseconds.
_MEASURED = 500


class PostgresStore(SqlStore):
    """A log in the current schema of a database. `read_only` opens one that exists and changes nothing.

    Writers take turns, as in a SQLite file, so that the positions of records become visible in their order. Readers
    wait for nobody.
    """

    def __init__(
        self,
        address: str | PostgresAddress,
        *,
        read_only: bool = False,
        guest: bool = False,
        on_unreadable: Callable[[UnreadableRecord], None] | None = None,
    ) -> None:
        self.address = _postgres(log_address(address))
        super().__init__(self.address, guest=guest, on_unreadable=on_unreadable)
        with translate_errors(self.address):
            self._connection = PostgresConnection(self.address)
            try:
                self._prepare(change=not (read_only or guest))
            except BaseException:
                self.close()
                raise

    @property
    def _database(self) -> PostgresConnection:
        return self._connection

    @contextmanager
    def _translated_errors(self) -> Iterator[None]:
        with translate_errors(self.address):
            yield

    def close(self) -> None:
        self._connection.close()

    @property
    def in_place(self) -> bool:
        return True

    @contextmanager
    def transaction(self, *, durable: bool = False, fenced: bool = False) -> Iterator[PostgresConnection]:
        """Without `durable`, a commit does not wait for the disk of the server: the last ones may be lost if the server
        crashes, but not if this process does."""
        lock = f"LOCK TABLE {_VERSION} IN EXCLUSIVE MODE"
        with self._committed(durable, lock) as connection:
            if fenced:
                self._require_ours()
            yield connection

    def unjudged(self, run: str) -> list[Record]:
        """PostgreSQL raises an error for JSON that it cannot read, so the receipts are read here."""
        applied_ids = set()
        for action, body in self.rows(RECEIPTS, {"run": mend(run)}):
            with suppress(ValueError, RecursionError):
                content = content_of(RECEIPT, load_body(body))
                if isinstance(content, ReceiptContent) and content.applied:
                    applied_ids.add(action)
        actions = self._records(ANSWERED_UNJUDGED, run, placeholders=True)
        return [action for action in actions if action.id in applied_ids]

    def usage(self) -> Usage:
        """The size of the tables with their indices. What the records take is an estimate: space that was freed is not
        returned to the disk, and its size is not known."""
        relations = ", ".join(f"pg_total_relation_size('{table}')" for table in TABLES)
        newest = f"SELECT pg_column_size(records.*) AS bytes FROM records ORDER BY number DESC LIMIT {_MEASURED}"
        ((*sizes, heap_bytes, live, record_bytes),) = self.rows(
            f"SELECT {relations}, pg_table_size('records'), "
            "coalesce((SELECT n_live_tup FROM pg_stat_user_tables WHERE relid = to_regclass('records')), 0), "
            f"coalesce((SELECT avg(bytes) FROM ({newest}) AS newest), 0)"
        )
        file_bytes = int(sum(sizes))
        used_bytes = float(live) * float(record_bytes) * file_bytes / max(int(heap_bytes), 1)
        return Usage(file_bytes, min(file_bytes, int(used_bytes)))

    def shrink(self, pages: int = 0) -> None:
        """Nothing to do: the server's autovacuum frees the space, and new records use it."""

    def compact(self) -> None:
        """It needs as much free space as the tables take. Writers wait meanwhile."""
        with self._translated_errors():
            self._connection.execute(f"VACUUM FULL {', '.join(TABLES)}")

    def _prepare(self, *, change: bool) -> None:
        version = self._version()
        if not change:
            if not version:
                raise NoLogError("the database has no log yet", where=self.where, fix="start a run first")
            return
        if version == SCHEMA_VERSION:
            return
        # The table that writers lock may not exist yet.
        with self._committed(True, f"SELECT pg_advisory_xact_lock({APPLICATION_ID})") as connection:
            version = self._version()  # another process may have been quicker
            if version:
                connection.execute(f"LOCK TABLE {_VERSION} IN EXCLUSIVE MODE")
                migrate(connection, version)
                connection.execute(f"UPDATE {_VERSION} SET version = {SCHEMA_VERSION}")
                return
            self._require_usable()
            connection.execute(f"CREATE TABLE {_VERSION} (version INTEGER NOT NULL)")
            connection.execute(f"INSERT INTO {_VERSION} VALUES ({SCHEMA_VERSION})")
            create(connection)

    def _version(self) -> int:
        """The version of the log in the database; 0 if there is none."""
        if not self._existing(_VERSION):
            return 0
        ((version,),) = self._connection.execute(f"SELECT version FROM {_VERSION}").fetchall()
        if version > SCHEMA_VERSION:
            raise NewerLogError(
                f"a newer Homeostat wrote this log (version {version}; this one reads {SCHEMA_VERSION})",
                where=self.where,
                fix="upgrade homeostat, or use another database",
            )
        return int(version)

    def _require_usable(self) -> None:
        ((encoding, schema),) = self._connection.execute(
            "SELECT current_setting('server_encoding'), current_schema()"
        ).fetchall()
        if schema is None:
            raise NoLogError("the database has no schema for new tables", where=self.where, fix="create the schema")
        if encoding != "UTF8":
            raise NoLogError(
                f"the database has the encoding {encoding}", where=self.where, fix="create one with ENCODING 'UTF8'"
            )
        foreign = self._existing(*TABLES)
        if foreign:
            raise NoLogError(
                f"another program has a table {foreign[0]!r} in this schema",
                where=self.where,
                fix="use a database or schema of its own for the log",
            )

    def _existing(self, *tables: str) -> list[str]:
        """Those that exist. The catalogue is read, because `to_regclass` may answer from a cache, as before another
        process made them."""
        names = ", ".join(f"'{table}'" for table in tables)
        rows = self._connection.execute(
            f"SELECT relname::text FROM pg_class WHERE relname IN ({names}) AND pg_table_is_visible(oid) ORDER BY 1"
        ).fetchall()
        return [str(name) for (name,) in rows]

    @contextmanager
    def _committed(self, durable: bool, lock: str) -> Iterator[PostgresConnection]:
        with translate_errors(self.address):
            try:
                self._connection.begin(
                    f"BEGIN; SET LOCAL synchronous_commit = {'on' if durable else 'off'}; "
                    f"SET LOCAL lock_timeout = '{LOCK_WAIT_S} s'; {lock}"
                )
                yield self._connection
                self._connection.commit()
            except BaseException:
                self._connection.roll_back()
                raise


def _postgres(address: LogAddress) -> PostgresAddress:
    if not isinstance(address, PostgresAddress):
        raise NoLogError("not the address of a PostgreSQL database", where=str(address))
    return address
