"""The log, read by the threads of a server: each has a connection of its own, and none ever writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from homeostat.core.errors import StoreError
from homeostat.store.protocol import Store
from homeostat.store.sqlite import SqliteStore

_Result = TypeVar("_Result")


class Reader:
    """A log that need not be there yet: whoever starts before the first run sees an empty one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mine = threading.local()

    def read(self, question: Callable[[Store], _Result]) -> _Result:
        """The answer; after an error, or where another file has taken its place, the file is opened anew."""
        store: SqliteStore | None = getattr(self._mine, "store", None)
        if store is None or self._file() != self._mine.file:
            self._close()
            self._mine.file = self._file()
            store = self._mine.store = SqliteStore(self.path, read_only=True)
        try:
            return question(store)
        except StoreError:
            self._close()
            raise

    def _file(self) -> tuple[int, int] | None:
        try:
            found = self.path.stat()
        except OSError:
            return None
        return found.st_dev, found.st_ino

    def _close(self) -> None:
        store: SqliteStore | None = getattr(self._mine, "store", None)
        self._mine.store = None
        if store is not None:
            store.close()
