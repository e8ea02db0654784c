# ruff: noqa: N802 - Spark's names
"""Spark's state of a key, in memory: the calls that variables and timers need, including times to live."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any

Key = tuple[Any, ...]
Columns = tuple[Any, ...]
Stored = tuple[Any, float]  # a value and when it expires, in milliseconds
NEVER = float("inf")


@dataclass(slots=True)
class Memory:
    """All state by variable and key, and the current time."""

    now_ms: int
    variables: dict[str, dict[Key, Any]] = field(default_factory=dict)
    timers: dict[Key, set[int]] = field(default_factory=dict)

    def due(self, until_ms: int) -> list[tuple[int, Key]]:
        timers = [(moment, key) for key, moments in self.timers.items() for moment in moments if moment <= until_ms]
        return sorted(timers, key=lambda each: each[0])


@dataclass(slots=True)
class MemoryHandle:
    """The handle that a State gets, for one key at a time."""

    memory: Memory
    key: Key = ()

    def getValueState(self, name: str, schema: str, ttl_ms: int | None = None) -> MemoryValue:
        return MemoryValue(self, name, ttl_ms)

    def getListState(self, name: str, schema: str, ttl_ms: int | None = None) -> MemoryList:
        return MemoryList(self, name, ttl_ms)

    def getMapState(self, name: str, keys: str, values: str, ttl_ms: int | None = None) -> MemoryMap:
        return MemoryMap(self, name, ttl_ms)

    def registerTimer(self, moment: int) -> None:
        self.memory.timers.setdefault(self.key, set()).add(moment)

    def deleteTimer(self, moment: int) -> None:
        self.memory.timers.get(self.key, set()).discard(moment)

    def listTimers(self) -> Iterator[int]:
        return iter(sorted(self.memory.timers.get(self.key, ())))


class _Variable:
    def __init__(self, handle: MemoryHandle, name: str, ttl_ms: int | None) -> None:
        self._handle, self._ttl_ms = handle, ttl_ms
        self._keys = handle.memory.variables.setdefault(name, {})

    def _until(self) -> float:
        return NEVER if self._ttl_ms is None else self._handle.memory.now_ms + self._ttl_ms

    def _alive(self, entry: Stored) -> bool:
        return entry[1] > self._handle.memory.now_ms

    def _here(self, empty: Callable[[], Any]) -> Any:
        return self._keys.setdefault(self._handle.key, empty())

    def clear(self) -> None:
        self._keys.pop(self._handle.key, None)


class MemoryValue(_Variable):
    def exists(self) -> bool:
        return self.get() is not None

    def get(self) -> Columns | None:
        entry = self._keys.get(self._handle.key)
        return entry[0] if entry and self._alive(entry) else None

    def update(self, columns: Columns) -> None:
        self._keys[self._handle.key] = (columns, self._until())


class MemoryList(_Variable):
    def exists(self) -> bool:
        return any(True for _ in self.get())

    def get(self) -> Iterator[Columns]:
        return (entry[0] for entry in self._keys.get(self._handle.key, ()) if self._alive(entry))

    def appendList(self, items: list[Columns]) -> None:
        self._here(list).extend((columns, self._until()) for columns in items)


class MemoryMap(_Variable):
    def containsKey(self, key: Columns) -> bool:
        return self.getValue(key) is not None

    def getValue(self, key: Columns) -> Columns | None:
        entry = self._here(dict).get(key)
        return entry[0] if entry and self._alive(entry) else None

    def updateValue(self, key: Columns, value: Columns) -> None:
        self._here(dict)[key] = (value, self._until())

    def removeKey(self, key: Columns) -> None:
        self._here(dict).pop(key, None)

    def iterator(self) -> Iterator[tuple[Columns, Columns]]:
        return iter([(key, entry[0]) for key, entry in self._here(dict).items() if self._alive(entry)])
