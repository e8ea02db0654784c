"""The log, read by the threads of a server: each has a connection of its own, and none ever writes."""

from __future__ import annotations

import threading
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from homeostat.core.errors import NoLogError, StoreError
from homeostat.store.protocol import Store
from homeostat.store.sqlite import SqliteStore

_Result = TypeVar("_Result")


class Reader:
    """A log that need not be there yet: whoever starts before the first run sees an empty one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._mine = threading.local()

    def read(self, question: Callable[[Store], _Result]) -> _Result:
        """The answer; after an error the next question opens the file anew."""
        store: SqliteStore | None = getattr(self._mine, "store", None)
        if store is None:
            store = self._mine.store = SqliteStore(self.path, read_only=True)
        try:
            return question(store)
        except StoreError:
            self._mine.store = None
            store.close()
            raise

    def there(self) -> bool:
        try:
            self.read(lambda store: store.position())
        except NoLogError:
            return False
        return True
