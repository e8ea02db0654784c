"""The variables that a State declares: `clicks = hs.Count()`, `pages = hs.List(str, ttl="1 h")`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

from homeostat.core.errors import ConfigError
from homeostat.keyed_state.cells import Cell, CountsCell, ListCell, MapCell, ValueCell
from homeostat.keyed_state.column_types import Codec
from homeostat.strict.units import UnitError, parse_duration

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

T = TypeVar("T")
K = TypeVar("K")
V = TypeVar("V")


class Kind:
    """A variable of each key. It expires `ttl` after its last write; in a list or map, each entry expires by itself."""

    def __init__(self, ttl: str | None) -> None:
        self.ttl_ms = None if ttl is None else milliseconds(ttl, "ttl")

    def __set_name__(self, owner: type, name: str) -> None:
        self.name = name

    def open(self, handle: StatefulProcessorHandle) -> Cell:
        raise NotImplementedError

    def cell(self, state: Any) -> Any:
        if state is None:
            raise AttributeError(f"{self.name} exists per key: read it in a handler, not on the class")
        return state._runtime.cells[self.name]

    def __delete__(self, state: object) -> None:
        self.cell(state).clear()


class Value(Kind, Generic[T]):
    """A value that you read, assign and `del`. Before the first assignment it is `start`, or None."""

    @overload
    def __init__(self: Value[T | None], kind: type[T], *, ttl: str | None = None) -> None: ...
    @overload
    def __init__(self, kind: type[T], start: T, *, ttl: str | None = None) -> None: ...
    def __init__(self, kind: type[Any], start: Any = None, *, ttl: str | None = None) -> None:
        super().__init__(ttl)
        self._codec: Codec[Any] = Codec(kind)
        self._start = start

    def open(self, handle: StatefulProcessorHandle) -> Cell:
        return ValueCell(handle.getValueState(self.name, self._codec.ddl, self.ttl_ms), self._codec)

    def __get__(self, state: object, owner: type) -> T:
        stored_value = self.cell(state).get()
        value: T = self._start if stored_value is None else stored_value
        return value

    def __set__(self, state: object, value: T) -> None:
        self.cell(state).set(value)


def Count(*, ttl: str | None = None) -> Value[int]:  # noqa: N802 - used like a class
    """A number that starts at 0: `self.clicks += 1`."""
    return Value(int, 0, ttl=ttl)


class List(Kind, Generic[T]):
    """A list: append, extend, iterate, assign another. Each item has its own time to live."""

    def __init__(self, kind: type[T], *, ttl: str | None = None) -> None:
        super().__init__(ttl)
        self._codec = Codec(kind)

    def open(self, handle: StatefulProcessorHandle) -> Cell:
        return ListCell(handle.getListState(self.name, self._codec.ddl, self.ttl_ms), self._codec)

    def __get__(self, state: object, owner: type) -> ListCell[T]:
        cell: ListCell[T] = self.cell(state)
        return cell

    def __set__(self, state: object, items: Iterable[T]) -> None:
        self.cell(state).replace(items)


class Map(Kind, Generic[K, V]):
    """A dictionary. Each entry has its own time to live."""

    def __init__(self, keys: type[K], values: type[V], *, ttl: str | None = None) -> None:
        super().__init__(ttl)
        self._keys, self._values = Codec(keys), Codec(values)

    def open(self, handle: StatefulProcessorHandle) -> Cell:
        return MapCell(self._store(handle), self._keys, self._values)

    def _store(self, handle: StatefulProcessorHandle) -> Any:
        return handle.getMapState(self.name, self._keys.ddl, self._values.ddl, self.ttl_ms)

    def __get__(self, state: object, owner: type) -> MapCell[K, V]:
        cell: MapCell[K, V] = self.cell(state)
        return cell

    def __set__(self, state: object, entries: Mapping[K, V]) -> None:
        self.cell(state).replace(entries)


class Counts(Map[K, int]):
    """How often each key was counted: `self.words[word] += 1`, `self.words.most_common(10)`."""

    def __init__(self, keys: type[K], *, ttl: str | None = None) -> None:
        super().__init__(keys, int, ttl=ttl)

    def open(self, handle: StatefulProcessorHandle) -> Cell:
        return CountsCell(self._store(handle), self._keys, self._values)

    def __get__(self, state: object, owner: type) -> CountsCell[K]:
        cell: CountsCell[K] = self.cell(state)
        return cell


def milliseconds(duration: str, where: str) -> int:
    try:
        ms = round(parse_duration(duration) * 1000)
    except UnitError as error:
        raise ConfigError(str(error), where=where) from None
    if ms < 1:
        raise ConfigError(f"must be at least 1 ms, not {duration!r}", where=where, fix='use a duration such as "10 s"')
    return ms
