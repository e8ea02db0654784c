"""`hs.State`: variables, handlers and timers on one class; and what runs it key by key, on Spark as in memory."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.keyed.column_types import column_names
from homeostat.keyed.variables import Kind
from homeostat.strict.units import UnitError, parse_duration

if TYPE_CHECKING:
    from pyspark.sql import DataFrame
    from pyspark.sql.group import GroupedData
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

PROCESSING, EVENT = "processing", "event"
Emitted = Iterable[tuple[Any, ...]] | None


class State:
    """What is remembered of each key, and what happens when rows or a timer come.

    A subclass declares its variables, says in `emits` which columns come out ("user STRING, clicks BIGINT"), and yields
    tuples of these. `time` is "event" where timers follow the watermark; else they follow the clock.
    """

    emits: ClassVar[str] = ""
    time: ClassVar[str | None] = None

    _bound: Runtime | None = None

    def on_rows(self, key: Any, rows: Iterator[Any]) -> Emitted:
        """The rows of a batch that have this key; a key of several columns is a tuple."""
        raise NotImplementedError

    def on_timer(self, key: Any, at_ms: int) -> Emitted:
        """A timer of this key has come; it was set for this moment."""
        raise NotImplementedError

    def over(self, grouped: GroupedData) -> DataFrame:
        """On Spark: `Sessions().over(clicks.groupBy("user"))`."""
        from homeostat.keyed import on_spark

        return on_spark.over(self, grouped)

    @property
    def now_ms(self) -> int:
        """When this batch began; in event time the watermark. In milliseconds since 1970."""
        return self._runtime.now_ms

    def wake(self, after: str, *, since: datetime | int | None = None) -> None:
        """Set a timer so long after a moment: now, unless another one is named."""
        self._runtime.wake(after, since)

    def sleep(self) -> None:
        """Remove the timers of this key."""
        for moment in self.timers:
            self._runtime.handle.deleteTimer(moment)

    @property
    def timers(self) -> list[int]:
        """For when the timers of this key are set."""
        return sorted(self._runtime.handle.listTimers())

    def __setattr__(self, name: str, value: Any) -> None:
        """What is not declared would be seen by other keys, and lost with the task."""
        if self._bound is not None and name not in self._bound.cells:
            cls = type(self).__name__
            raise HomeostatError(f"{cls}.{name} is not declared", fix=f"{name} = hs.Value(…) in the class")
        super().__setattr__(name, value)

    @property
    def _runtime(self) -> Runtime:
        if self._bound is None:
            name = type(self).__name__
            raise HomeostatError(f"{name} has no state here", fix=f"{name}().over(rows.groupBy(…)) or a Rehearsal")
        return self._bound

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        _check(cls)


class Runtime:
    """A State on a handle of its own: Spark's, or one in memory."""

    def __init__(self, state: State, handle: StatefulProcessorHandle) -> None:
        self._state, self.handle = state, handle
        self.columns = column_names(state.emits)
        self.cells = {kind.name: kind.open(handle) for kind in kinds_of(type(state))}
        self._now_ms = -1
        state._bound = self

    def rows(self, key: tuple[Any, ...], rows: Iterator[Any], now_ms: int) -> Iterator[tuple[Any, ...]]:
        return self._call(now_ms, lambda: self._state.on_rows(_plain(key), rows))

    def timer(self, key: tuple[Any, ...], at_ms: int, now_ms: int) -> Iterator[tuple[Any, ...]]:
        return self._call(now_ms, lambda: self._state.on_timer(_plain(key), at_ms))

    @property
    def now_ms(self) -> int:
        if self._now_ms < 0:
            name = type(self._state).__name__
            raise HomeostatError(f"{name} asks for the time and is told none", fix=f'time = "{PROCESSING}" in {name}')
        return self._now_ms

    def wake(self, after: str, since: datetime | int | None) -> None:
        name = type(self._state).__name__
        if type(self._state).on_timer is State.on_timer:
            raise HomeostatError(f"{name} sets a timer and has no on_timer", fix="define on_timer(self, key, at_ms)")
        if since is None and self._state.time == EVENT:
            raise HomeostatError(f"in event time {name} must say since when", fix='such as wake("10 s", since=row.at)')
        if since is None:
            since = self.now_ms
        elif isinstance(since, datetime):
            since = round(since.timestamp() * 1000)
        try:
            self.handle.registerTimer(since + round(parse_duration(after) * 1000))
        except UnitError as error:
            raise ConfigError(str(error), where=f"{name}.wake") from None

    def begin(self, now_ms: int) -> None:
        self._now_ms = now_ms
        for cell in self.cells.values():
            cell.forget()

    def _call(self, now_ms: int, handler: Callable[[], Emitted]) -> Iterator[tuple[Any, ...]]:
        self.begin(now_ms)
        for row in handler() or ():
            yield self._checked(row)
        for cell in self.cells.values():
            cell.flush()

    def _checked(self, row: Any) -> tuple[Any, ...]:
        columns = self.columns
        if not isinstance(row, tuple) or len(row) != len(columns):
            name = type(self._state).__name__
            raise HomeostatError(f"{name} yields {row!r}", fix=f"a tuple of {', '.join(columns)}, as `emits` says")
        return row


def kinds_of(cls: type[State]) -> list[Kind]:
    """The variables of a class and of those it builds on, each name once."""
    found = {name: each for base in reversed(cls.__mro__) for name, each in vars(base).items()}
    return [each for each in found.values() if isinstance(each, Kind)]


def time_mode(cls: type[State]) -> str:
    """Spark's name for the time that a class lives in. With a clock a query runs on without rows, so only at need."""
    if cls.time == EVENT:
        return "EventTime"
    needs_clock = cls.time == PROCESSING or cls.on_timer is not State.on_timer
    return "ProcessingTime" if needs_clock or any(kind.ttl_ms for kind in kinds_of(cls)) else "None"


def _plain(key: tuple[Any, ...]) -> Any:
    return key[0] if len(key) == 1 else tuple(key)


def _check(cls: type[State]) -> None:
    kinds, name = kinds_of(cls), cls.__name__
    if cls.time not in (None, PROCESSING, EVENT):
        raise ConfigError(f"{cls.time!r} is no time", where=f"{name}.time", fix=f"{PROCESSING!r} or {EVENT!r}")
    for kind in kinds:
        if hasattr(State, kind.name) or kind.name.startswith("_"):
            raise ConfigError("a variable cannot have this name", where=f"{name}.{kind.name}", fix="choose another")
        if kind.ttl_ms and cls.time == EVENT:
            raise ConfigError(
                "Spark has a time to live by the clock only, not in event time",
                where=f"{name}.{kind.name}",
                fix="clear it in on_timer",
            )
    if cls.emits:
        column_names(cls.emits)
    elif cls.on_rows is not State.on_rows:
        raise ConfigError("no columns come out", where=name, fix='name them: emits = "user STRING, clicks BIGINT"')
