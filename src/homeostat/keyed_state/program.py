"""The base of `hs.State`: variables, handlers and timers in one class, and the runtime that calls it for each key."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime
from typing import TYPE_CHECKING, Any, ClassVar

from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.keyed_state.column_types import column_names
from homeostat.keyed_state.variables import Kind
from homeostat.strict.units import UnitError, parse_duration

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

PROCESSING, EVENT = "processing", "event"
# The method of `hs.State` that runs it on Spark: no variable may have its name.
RUN_ON_SPARK = "over"
Emitted = Iterable[tuple[Any, ...]] | None


class StateProgram:
    """The state of each key, and what to do when rows arrive or a timer fires.

    A subclass declares its variables, declares its output columns in `emits` ("user STRING, clicks BIGINT"), and yields
    tuples of these. `time` is "event" if timers follow the watermark; otherwise they follow the clock.
    """

    emits: ClassVar[str] = ""
    time: ClassVar[str | None] = None

    _bound: Runtime | None = None

    def on_rows(self, key: Any, rows: Iterator[Any]) -> Emitted:
        """Handle the rows of a batch with this key. A key of several columns is a tuple."""
        raise NotImplementedError

    def on_timer(self, key: Any, at_ms: int) -> Emitted:
        """Handle a timer of this key that was set for `at_ms`."""
        raise NotImplementedError

    @property
    def now_ms(self) -> int:
        """The start of this batch, or the watermark in event time, in milliseconds since 1970."""
        return self._runtime.now_ms

    def wake(self, after: str, *, since: datetime | int | None = None) -> None:
        """Set a timer `after` a duration, counted from `since`; by default from now."""
        self._runtime.wake(after, since)

    def sleep(self) -> None:
        """Remove the timers of this key."""
        for moment in self.timers:
            self._runtime.handle.deleteTimer(moment)

    @property
    def timers(self) -> list[int]:
        """The times of the timers of this key, in milliseconds."""
        return sorted(self._runtime.handle.listTimers())

    def __setattr__(self, name: str, value: Any) -> None:
        """Refuse undeclared attributes: they would be shared by all keys and lost with the task."""
        if self._bound is not None and name not in self._bound.cells:
            cls = type(self).__name__
            raise HomeostatError(f"{cls}.{name} is not declared", fix=f"add `{name} = hs.Value(…)` to the class")
        super().__setattr__(name, value)

    @property
    def _runtime(self) -> Runtime:
        if self._bound is None:
            name = type(self).__name__
            raise HomeostatError(
                f"the state of {name} is available only in its handlers",
                fix=f"run {name}().over(rows.groupBy(…)), or use a Rehearsal",
            )
        return self._bound

    def __init_subclass__(cls, **rest: Any) -> None:
        super().__init_subclass__(**rest)
        _check(cls)


class Runtime:
    """Runs a StateProgram on a handle: Spark's, or one in memory."""

    def __init__(self, state: StateProgram, handle: StatefulProcessorHandle) -> None:
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
            raise HomeostatError(
                f"{name} uses the time, but does not declare `time`", fix=f'add time = "{PROCESSING}" to {name}'
            )
        return self._now_ms

    def wake(self, after: str, since: datetime | int | None) -> None:
        name = type(self._state).__name__
        if type(self._state).on_timer is StateProgram.on_timer:
            raise HomeostatError(f"{name} sets a timer, but has no on_timer", fix="define on_timer(self, key, at_ms)")
        if since is None and self._state.time == EVENT:
            raise HomeostatError(
                f"in event time, wake of {name} needs the argument since", fix='write wake("10 s", since=row.at)'
            )
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
            yield self._check(row)
        for cell in self.cells.values():
            cell.flush()

    def _check(self, row: Any) -> tuple[Any, ...]:
        columns = self.columns
        if not isinstance(row, tuple) or len(row) != len(columns):
            name = type(self._state).__name__
            raise HomeostatError(
                f"{name} yields {row!r}, which does not match `emits`", fix=f"yield a tuple of {', '.join(columns)}"
            )
        return row


def kinds_of(cls: type[StateProgram]) -> list[Kind]:
    """Return the variables of a class and its base classes, each name once."""
    attributes = {name: each for base in reversed(cls.__mro__) for name, each in vars(base).items()}
    return [each for each in attributes.values() if isinstance(each, Kind)]


def time_mode(cls: type[StateProgram]) -> str:
    """Return Spark's time mode for a class. With processing time, a query runs even without rows, so this mode is used
    only if needed."""
    if cls.time == EVENT:
        return "EventTime"
    needs_clock = cls.time == PROCESSING or cls.on_timer is not StateProgram.on_timer
    return "ProcessingTime" if needs_clock or any(kind.ttl_ms for kind in kinds_of(cls)) else "None"


def _plain(key: tuple[Any, ...]) -> Any:
    return key[0] if len(key) == 1 else tuple(key)


def _check(cls: type[StateProgram]) -> None:
    kinds, name = kinds_of(cls), cls.__name__
    if cls.time not in (None, PROCESSING, EVENT):
        raise ConfigError(f"time cannot be {cls.time!r}", where=f"{name}.time", fix=f"use {PROCESSING!r} or {EVENT!r}")
    for kind in kinds:
        if hasattr(StateProgram, kind.name) or kind.name == RUN_ON_SPARK or kind.name.startswith("_"):
            raise ConfigError(
                "this name is reserved", where=f"{name}.{kind.name}", fix="choose another name for the variable"
            )
        if kind.ttl_ms and cls.time == EVENT:
            raise ConfigError(
                "a time to live follows the clock, so Spark does not allow it in event time",
                where=f"{name}.{kind.name}",
                fix="clear the variable in on_timer",
            )
    if cls.emits:
        column_names(cls.emits)
    elif cls.on_rows is not StateProgram.on_rows:
        raise ConfigError(
            "emits declares no output columns", where=name, fix='add emits = "user STRING, clicks BIGINT"'
        )
