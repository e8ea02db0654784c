"""Lets the threads of the server read the log. Each thread has its own connection, and none writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from homeostat.core.errors import StoreError
from homeostat.store.address import LogAddress, is_missing
from homeostat.store.opening import identity_of_file, open_store
from homeostat.store.protocol import Store
from homeostat.store.sql_store import SqlStore

_Result = TypeVar("_Result")


class Reader:
    """The log may not exist yet: a server that starts before the first run shows an empty list."""

    def __init__(self, log: LogAddress) -> None:
        self.log = log
        self._thread_local = threading.local()

    def read(self, question: Callable[[Store], _Result]) -> _Result:
        """Answers a question. The file is opened again after an error, or when another file has replaced it."""
        store: SqlStore | None = getattr(self._thread_local, "store", None)
        if store is None or self.file != self._thread_local.file:
            self._close()
            self._thread_local.file = self.file
            store = self._thread_local.store = open_store(self.log, read_only=True)
        try:
            return question(store)
        except StoreError:
            self._close()
            raise

    @property
    def file(self) -> tuple[int, int] | None:
        """Which file is the log now; None if there is none."""
        return identity_of_file(self.log)

    @property
    def is_empty(self) -> bool:
        """Whether a missing log means that no run has started yet, and not that the address is wrong."""
        return is_missing(self.log) or not isinstance(self.log, Path)

    def _close(self) -> None:
        store: SqlStore | None = getattr(self._thread_local, "store", None)
        self._thread_local.store = None
        if store is not None:
            store.close()
