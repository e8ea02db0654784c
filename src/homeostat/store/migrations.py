"""How the tables of an earlier version become those of this version: one function for each version.

To change the tables, add a function and its version to `MIGRATIONS`. A new log takes the same way: it begins with the
tables of version 1 and runs all migrations. Add tables and columns only, so that a log of an earlier version can be
read without being changed.
"""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Mapping

from homeostat.store.sql import SCHEMA

FIRST_VERSION = 1


def _add_applications(connection: sqlite3.Connection) -> None:
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


MIGRATIONS: Mapping[int, Callable[[sqlite3.Connection], None]] = {2: _add_applications}
SCHEMA_VERSION = max(MIGRATIONS)


def create(connection: sqlite3.Connection) -> None:
    """Make the tables of an empty file. Call it in a transaction."""
    for statement in SCHEMA.split(";"):
        connection.execute(statement)
    migrate(connection, FIRST_VERSION)


def migrate(connection: sqlite3.Connection, version: int) -> None:
    """Bring a log of that version to this one. Call it in a transaction."""
    for target in range(version + 1, SCHEMA_VERSION + 1):
        MIGRATIONS[target](connection)
    connection.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
