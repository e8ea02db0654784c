"""How the tables of an earlier version become those of this version: one function for each version.

To change the tables, add a function and its version to `MIGRATIONS`. A new log takes the same way: it begins with the
tables of version 1 and runs all migrations. Add tables and columns only, so that a log of an earlier version can be
read without being changed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from homeostat.store.sql import SCHEMA
from homeostat.store.sql_database import Connection

FIRST_VERSION = 1


def _add_applications(connection: Connection) -> None:
    """An application has an identity, its runs belong to it, and one manager at a time holds it."""
    connection.execute(
        "CREATE TABLE applications ("
        "  application INTEGER PRIMARY KEY,"
        "  identity TEXT NOT NULL UNIQUE,"
        "  name TEXT NOT NULL UNIQUE,"
        "  token TEXT NOT NULL DEFAULT '',"
        "  beats INTEGER NOT NULL DEFAULT 0,"
        "  about TEXT NOT NULL DEFAULT '{}'"
        ")"
    )
    connection.execute("ALTER TABLE runs ADD COLUMN application INTEGER")


MIGRATIONS: Mapping[int, Callable[[Connection], None]] = {2: _add_applications}
SCHEMA_VERSION = max(MIGRATIONS)


def create(connection: Connection) -> None:
    """Make the tables in an empty database. Call it in a transaction, and write the version there too."""
    for statement in filter(str.strip, SCHEMA.split(";")):
        connection.execute(statement)
    migrate(connection, FIRST_VERSION)


def migrate(connection: Connection, version: int) -> None:
    """Bring the tables of that version to this one. Call it in a transaction, and write the version there too."""
    for target in range(version + 1, SCHEMA_VERSION + 1):
        MIGRATIONS[target](connection)
