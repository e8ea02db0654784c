"""The applications in a log: their identities, the names of their runs, and the manager that holds each of them."""

from __future__ import annotations

from dataclasses import asdict, dataclass, fields
from typing import Any

from homeostat.core.errors import StoreError
from homeostat.store.codec import dump, load_body, mend
from homeostat.store.sql_database import Connection, SqlDatabase

# Characters of the identity that tell two applications of one name apart. More are used if these are not enough.
_SHORT_IDENTITY = 4


class ForeignRunError(StoreError):
    """A run in the log belongs to another application."""


@dataclass(frozen=True, slots=True)
class Holder:
    """The manager that controls an application, or did so last. `beats` grows as long as it lives.

    `kernel` names the running kernel of its host, `lock` the file that it has locked there.
    """

    token: str = ""
    beats: int = 0
    host: str = ""
    kernel: str = ""
    process: int = 0
    directory: str = ""
    lock: str = ""


class ApplicationTable:
    """Reads and changes the applications of one log."""

    def __init__(self, store: SqlDatabase) -> None:
        self._store = store

    def register(self, identity: str, name: str, *, adopts: bool = False) -> str:
        """Add the application, unless the log has it. Return its name there, which no other application has.

        With `adopts`, it may take over runs of this name that belong to no application, because version 0.1.0 wrote
        them.
        """
        with self._store.transaction() as connection:
            rows = connection.execute("SELECT name FROM applications WHERE identity = ?", (identity,)).fetchall()
            if rows:
                return str(rows[0][0])
            name, length = mend(name), _SHORT_IDENTITY
            unused_name = name
            while not _is_free(connection, unused_name, adopts=adopts and unused_name == name):
                unused_name, length = f"{name}-{identity[:length]}", length + 1
            connection.execute("INSERT INTO applications (identity, name) VALUES (?, ?)", (identity, unused_name))
            return unused_name

    def bind(self, run: str, identity: str) -> None:
        """From now on the run belongs to this application. A ForeignRunError if it belongs to another one."""
        with self._store.transaction() as connection:
            ((application, name),) = connection.execute(
                "SELECT application, name FROM applications WHERE identity = ?", (identity,)
            ).fetchall()
            key = self._store.run_key(run)
            ((owner,),) = connection.execute("SELECT application FROM runs WHERE run = ?", (key,)).fetchall()
            if owner is not None and owner != application:
                raise ForeignRunError(
                    f"run {run} belongs to another application",
                    where=self._store.where,
                    fix=f"use another log for {name}",
                )
            connection.execute("UPDATE runs SET application = ? WHERE run = ?", (application, key))

    def holder(self, identity: str) -> Holder:
        """The manager that holds the application. If it has no token, it has released the application."""
        rows = self._store.rows("SELECT token, beats, about FROM applications WHERE identity = ?", (identity,))
        if not rows:
            return Holder()
        token, beats, about = rows[0]
        return Holder(str(token), int(beats), **_facts(about))

    def take(self, identity: str, holder: Holder, *, instead_of: Holder) -> bool:
        """Make it the holder, if the previous holder has not shown that it is alive in the meantime."""
        about = {key: value for key, value in asdict(holder).items() if key not in ("token", "beats")}
        with self._store.transaction(durable=True) as connection:
            changed = connection.execute(
                "UPDATE applications SET token = ?, beats = beats + 1, about = ? "
                "WHERE identity = ? AND token = ? AND beats = ?",
                (holder.token, dump(about), identity, instead_of.token, instead_of.beats),
            )
            return changed.rowcount == 1

    def beat(self, identity: str, token: str) -> bool:
        """Show that the holder is alive. False if it is no longer the holder."""
        with self._store.transaction() as connection:
            changed = connection.execute(
                "UPDATE applications SET beats = beats + 1 WHERE identity = ? AND token = ?", (identity, token)
            )
            return changed.rowcount == 1

    def release(self, identity: str, token: str) -> None:
        with self._store.transaction() as connection:
            connection.execute(
                "UPDATE applications SET token = '', beats = beats + 1 WHERE identity = ? AND token = ?",
                (identity, token),
            )


def _is_free(connection: Connection, name: str, *, adopts: bool) -> bool:
    taken_names = connection.execute("SELECT 1 FROM applications WHERE name = ?", (name,)).fetchall()
    prefix = f"{name}/"
    owners = connection.execute(
        "SELECT application FROM runs WHERE substr(name, 1, ?) = ?", (len(prefix), prefix)
    ).fetchall()
    return not taken_names and all(adopts and owner is None for (owner,) in owners)


def _facts(about: Any) -> dict[str, Any]:
    """What another version wrote is left out."""
    try:
        body = load_body(str(about))
    except ValueError:
        return {}
    types = {field.name: type(field.default) for field in fields(Holder) if field.name not in ("token", "beats")}
    return {name: value for name, value in body.items() if name in types and type(value) is types[name]}
