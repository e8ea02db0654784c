"""The settings that an application keeps for the next driver, wherever that one starts.

They are in a file of the application's directory. If the log is in a database, they are there too, because a driver on
another machine finds the database and not the directory.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from homeostat.core.errors import UnreadableError
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.knobs_file import knobs_of, read_knobs, with_format, write_knobs
from homeostat.store.address import LogAddress, PostgresAddress
from homeostat.store.protocol import SET_ASIDE
from homeostat.store.sql_store import SqlStore

STATE = "knobs"


class KeptKnobs:
    """Nothing is written to the database once another manager holds the application."""

    def __init__(self, path: Path, log: LogAddress, hold: ApplicationHold, say: Callable[[str], None]) -> None:
        self._path, self._hold, self._say = path, hold, say
        self._in_log = isinstance(log, PostgresAddress)

    def read(self) -> Mapping[str, Any]:
        """Those in the database come first: a driver on another machine may have written them after the file."""
        if self._in_log:
            with closing(self._hold.open_log(self._hold.name)) as store:
                knobs = self._read_from(store)
            if knobs is not None:
                return knobs
        return read_knobs(self._path, self._say)

    def write(self, knobs: Mapping[str, Any]) -> None:
        write_knobs(self._path, knobs)
        if self._in_log:
            with closing(self._hold.open_log(self._hold.name)) as store:
                store.save_state(self._hold.name, STATE, with_format(knobs))

    def _read_from(self, store: SqlStore) -> Mapping[str, Any] | None:
        try:
            content = store.load_state(self._hold.name, STATE)
            return None if content is None else knobs_of(content, store.where)
        except (ValueError, TypeError, AttributeError, OverflowError, UnreadableError) as error:
            store.set_aside(self._hold.name, STATE)
            self._say(
                f"{store.where}: the settings of {self._hold.name} cannot be read ({error}); they are kept as "
                f"{STATE}{SET_ASIDE}, and the application starts without them"
            )
            return {}
