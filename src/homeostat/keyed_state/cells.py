"""The variables of the current key.

Every access to Spark's state is a call to the JVM. So a value is read once per call of a handler, and changes are
written once, at its end.
"""

from __future__ import annotations

from collections.abc import ItemsView, Iterable, Iterator, Mapping, MutableMapping
from typing import TYPE_CHECKING, Any, Generic, Protocol, TypeVar

from homeostat.keyed_state.column_types import Codec

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import ListState, MapState, ValueState

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Cell(Protocol):
    def forget(self) -> None:
        """Drop everything that was read, because another key or another batch follows."""

    def flush(self) -> None:
        """Write the changes to the state."""


class ValueCell(Generic[T]):
    def __init__(self, store: ValueState, codec: Codec[T]) -> None:
        self._store, self._codec = store, codec
        self.forget()

    def forget(self) -> None:
        self._value: T | None = None
        self._is_loaded = self._changed = False

    def get(self) -> T | None:
        if not self._is_loaded:
            # `get` alone would be enough, but Spark logs a warning if there is no value.
            columns = self._store.get() if self._store.exists() else None
            self._value = None if columns is None else self._codec.unpack(columns)
            self._is_loaded = True
        return self._value

    def set(self, value: T | None) -> None:
        # Store the value as it will be read back, and fail here if it cannot be stored.
        self._value = None if value is None else self._codec.unpack(self._codec.pack(value))
        self._is_loaded = self._changed = True

    def clear(self) -> None:
        self.set(None)

    def flush(self) -> None:
        if self._changed and self._value is None:
            self._store.clear()
        elif self._changed and self._value is not None:
            self._store.update(self._codec.pack(self._value))
        self._changed = False


class ListCell(Generic[T]):
    """A list that items can be appended to."""

    def __init__(self, store: ListState, codec: Codec[T]) -> None:
        self._store, self._codec = store, codec
        self.forget()

    def forget(self) -> None:
        self._added: list[tuple[Any, ...]] = []

    def append(self, item: T) -> None:
        self._added.append(self._codec.pack(item))

    def extend(self, items: Iterable[T]) -> None:
        self._added.extend(map(self._codec.pack, items))

    def replace(self, items: Iterable[T]) -> None:
        new_items = list(items)  # copy first: the items may come from this very variable
        self.clear()
        self.extend(new_items)

    def clear(self) -> None:
        self._added = []
        self._store.clear()

    def __iter__(self) -> Iterator[T]:
        self.flush()
        return iter([self._codec.unpack(columns) for columns in self._store.get()])

    def __len__(self) -> int:
        return sum(1 for _ in self)

    def __bool__(self) -> bool:
        return bool(self._added) or self._store.exists()

    def flush(self) -> None:
        if self._added:
            self._store.appendList(self._added)
        self._added = []


class MapCell(MutableMapping[K, V]):
    """A dictionary. A lookup reads one entry, iteration reads all of them."""

    def __init__(self, store: MapState, keys: Codec[K], values: Codec[V]) -> None:
        self._store, self._keys, self._values = store, keys, values
        self.forget()

    def forget(self) -> None:
        self._entries: dict[K, V | None] = {}  # None: looked up and missing
        self._changed: set[K] = set()
        self._whole = False

    def find(self, key: K) -> V | None:
        if key not in self._entries and not self._whole:
            packed_key = self._keys.pack(key)
            columns = self._store.getValue(packed_key) if self._store.containsKey(packed_key) else None
            self._entries[key] = None if columns is None else self._values.unpack(columns)
        return self._entries.get(key)

    def __getitem__(self, key: K) -> V:
        value = self.find(key)
        if value is None:
            raise KeyError(key)
        return value

    def __contains__(self, key: object) -> bool:
        return self.find(key) is not None  # type: ignore[arg-type]

    def __setitem__(self, key: K, value: V) -> None:
        key = self._keys.unpack(self._keys.pack(key))
        self._entries[key] = self._values.unpack(self._values.pack(value))
        self._changed.add(key)

    def __delitem__(self, key: K) -> None:
        if self.find(key) is None:
            raise KeyError(key)
        self._entries[key] = None
        self._changed.add(key)

    def clear(self) -> None:
        self.forget()
        self._whole = True
        self._store.clear()

    def replace(self, entries: Mapping[K, V]) -> None:
        new_entries = dict(entries)  # copy first: the items may come from this very variable
        self.clear()
        self.update(new_entries)

    def __iter__(self) -> Iterator[K]:
        return iter(self._all())

    def __len__(self) -> int:
        return len(self._all())

    def items(self) -> ItemsView[K, V]:
        return self._all().items()

    def _all(self) -> dict[K, V]:
        if not self._whole:
            self.flush()
            pairs = self._store.iterator()
            self._entries = {self._keys.unpack(key): self._values.unpack(value) for key, value in pairs}
            self._whole = True
        return {key: value for key, value in self._entries.items() if value is not None}

    def flush(self) -> None:
        for key in self._changed:
            value = self._entries[key]
            if value is None:
                self._store.removeKey(self._keys.pack(key))
            else:
                self._store.updateValue(self._keys.pack(key), self._values.pack(value))
        self._changed = set()


class CountsCell(MapCell[K, int]):
    """How often each key was counted; 0 if never."""

    def __getitem__(self, key: K) -> int:
        return self.find(key) or 0

    def __delitem__(self, key: K) -> None:
        """Like Python's Counter, deleting a missing key is not an error."""
        if self.find(key) is not None:
            super().__delitem__(key)

    def most_common(self, n: int | None = None) -> list[tuple[K, int]]:
        return sorted(self.items(), key=lambda item: item[1], reverse=True)[:n]
