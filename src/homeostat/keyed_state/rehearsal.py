"""Runs a State in memory as Spark would: batch by batch, with timers, times to live and watermarks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from copy import copy
from datetime import datetime
from typing import TYPE_CHECKING, Any, Generic, TypeVar, cast

from homeostat.core.errors import ConfigError
from homeostat.keyed_state.memory_handle import Key, Memory, MemoryHandle
from homeostat.keyed_state.program import EVENT, Runtime, StateProgram, time_mode
from homeostat.keyed_state.variables import milliseconds

if TYPE_CHECKING:
    from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

S = TypeVar("S", bound=StateProgram)
Emitted = list[tuple[Any, ...]]


class Rehearsal(Generic[S]):
    """`feed` runs a batch of rows, `advance` lets time pass, `rehearsal[key]` is the state of a key.

    Both return what the State emits, by key in the order of first arrival. `key` names the columns that Spark would
    group by. In event time also pass the column of the time, and the delay of the watermark.
    """

    def __init__(
        self, state: S, *, key: str | Sequence[str], event_time: str | None = None, delay: str | None = None
    ) -> None:
        if (state.time == EVENT) != (event_time is not None):
            name = type(state).__name__
            if event_time is None:
                raise ConfigError(
                    f"{name} uses event time", where="event_time", fix="name the column of the event time"
                )
            raise ConfigError(
                f"{name} does not use event time", where="event_time", fix=f'add time = "event" to {name}'
            )
        self._state = state
        self._key = (key,) if isinstance(key, str) else tuple(key)
        self._event_time = event_time
        self._delay_ms = milliseconds(delay, "delay") if delay else 0
        self._memory = Memory(now_ms=0)
        self._watermark_ms = 0
        self._handle = MemoryHandle(self._memory)
        self._runtime = _runtime(copy(state), self._handle)

    def feed(self, *rows: Mapping[str, Any], after: str | None = None) -> Emitted:
        """Run one batch; `after` is the time since the last one. In event time also run the empty batch that follows
        when the watermark has moved.
        """
        self._memory.now_ms += milliseconds(after, "after") if after else 0
        rows_out: Emitted = []
        for key, group in self._group(rows).items():
            self._handle.key = key
            rows_out += self._runtime.rows(key, iter(group), self._now_ms)
        rows_out += self._timers()
        if self._event_time is not None and rows:
            newest_ms = max(_ms(row[self._event_time]) for row in rows)
            rows_out += self._watermark(newest_ms - self._delay_ms)
        return rows_out

    def advance(self, duration: str) -> Emitted:
        """Let time pass without rows. In event time the watermark moves by as much."""
        if self._event_time is None:
            return self.feed(after=duration)
        return self._watermark(self._watermark_ms + milliseconds(duration, "advance"))

    def __getitem__(self, key: Any) -> S:
        """Return the state of this key, for reading."""
        state = copy(self._state)
        runtime = _runtime(state, MemoryHandle(self._memory, key if isinstance(key, tuple) else (key,)))
        runtime.begin(self._now_ms)
        return state

    @property
    def _now_ms(self) -> int:
        mode = time_mode(type(self._state))
        return {"None": -1, "EventTime": self._watermark_ms}.get(mode, self._memory.now_ms)

    def _group(self, rows: Iterable[Mapping[str, Any]]) -> dict[Key, list[Row]]:
        groups: dict[Key, list[Row]] = {}
        for row in rows:
            if self._event_time is None or _ms(row[self._event_time]) > self._watermark_ms:
                groups.setdefault(tuple(row[name] for name in self._key), []).append(Row(row))
        return groups

    def _watermark(self, moment_ms: int) -> Emitted:
        if moment_ms <= self._watermark_ms:
            return []
        self._watermark_ms = moment_ms
        return self._timers()

    def _timers(self) -> Emitted:
        """Fire the timers that are due. Timers that they set wait for the next batch."""
        rows_out: Emitted = []
        for moment, key in self._memory.due(self._now_ms):
            self._handle.key = key
            rows_out += self._runtime.timer(key, moment, self._now_ms)
            self._handle.deleteTimer(moment)
        return rows_out


class Row(tuple[Any, ...]):
    """Like Spark's Row: `row.user`, `row["user"]` and `row[0]`."""

    _names: tuple[str, ...]

    def __new__(cls, columns: Mapping[str, Any]) -> Row:
        row = super().__new__(cls, columns.values())
        row._names = tuple(columns)
        return row

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name not in self._names:
            raise AttributeError(name)
        return self[self._names.index(name)]

    def __getitem__(self, item: Any) -> Any:
        return super().__getitem__(self._names.index(item) if isinstance(item, str) else item)

    def asDict(self) -> dict[str, Any]:  # noqa: N802 - Spark's
        return dict(zip(self._names, self, strict=True))


def _runtime(state: StateProgram, handle: MemoryHandle) -> Runtime:
    return Runtime(state, cast("StatefulProcessorHandle", handle))


def _ms(moment: datetime | int) -> int:
    return round(moment.timestamp() * 1000) if isinstance(moment, datetime) else moment
