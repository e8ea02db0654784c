"""Lets the threads of the server read the log. Each thread has its own connection, and none writes."""

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
    """The log may not exist yet: a server that starts before the first run shows an empty list."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._thread_local = threading.local()

    def read(self, question: Callable[[Store], _Result]) -> _Result:
        """Answers a question. The file is opened again after an error, or when another file has replaced it."""
        store: SqliteStore | None = getattr(self._thread_local, "store", None)
        if store is None or self.file != self._thread_local.file:
            self._close()
            self._thread_local.file = self.file
            store = self._thread_local.store = SqliteStore(self.path, read_only=True)
        try:
            return question(store)
        except StoreError:
            self._close()
            raise

    @property
    def file(self) -> tuple[int, int] | None:
        """Which file is the log now; None if there is none."""
        try:
            status = self.path.stat()
        except OSError:
            return None
        return status.st_dev, status.st_ino

    def _close(self) -> None:
        store: SqliteStore | None = getattr(self._thread_local, "store", None)
        self._thread_local.store = None
        if store is not None:
            store.close()
