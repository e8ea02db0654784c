"""New records as server-sent events: one poll serves all viewers, and a viewer that was disconnected catches up."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import asdict
from typing import NamedTuple

from homeostat.core.errors import StoreError
from homeostat.store.protocol import Placed
from homeostat.web.reader import Reader
from homeostat.web.responses import as_json
from homeostat.web.stories import line

POLL_S = 0.4
KEEP_ALIVE_S = 15.0
MOST_VIEWERS = 200
MOST_MISSED = 500
_KEPT = 2_000


class _Event(NamedTuple):
    """A record in the form that is sent to every viewer."""

    position: int
    run: str
    data: bytes


class Feed:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._news: deque[_Event] = deque(maxlen=_KEPT)
        self._position = -1
        self._changed = asyncio.Event()
        self.viewers = 0

    async def follow(self) -> None:
        """Runs as long as the server. A log that is missing or locked is read again later."""
        while True:
            with suppress(StoreError):
                self._take(*await asyncio.to_thread(self._poll, self._position))
            await asyncio.sleep(POLL_S)

    def _poll(self, position: int) -> tuple[int, list[_Event]]:
        """The newest position in the log, and the new events."""
        newest = self._reader.read(lambda store: store.position())
        if not 0 <= position <= newest:
            return newest, []
        fresh = [_event_of(placed) for placed in self._reader.read(lambda store: store.after(position, MOST_MISSED))]
        return (fresh[-1].position if fresh else position), fresh

    def _take(self, position: int, fresh: list[_Event]) -> None:
        if position == self._position:
            return
        if not fresh:  # the first look, or another log has replaced the previous one
            self._news.clear()
        self._position = position
        self._news.extend(fresh)
        changed, self._changed = self._changed, asyncio.Event()
        changed.set()

    async def stream(self, run: str, after: int | None) -> AsyncGenerator[bytes]:
        """Events of one run, or of all if `run` is empty; `after` is the last event that the viewer received. A viewer
        that missed too many, or knows a position that this log does not have, gets `reset`."""
        self.viewers += 1
        try:
            position = self._position if after is None else after
            yield b"retry: 1000\n" + _place(position)
            while True:
                missed_events = await self._since(position)
                if len(missed_events) >= MOST_MISSED or 0 <= self._position < position:
                    position, missed_events = self._position, []
                    yield _encode(position, "reset", b"{}")
                for event in missed_events:
                    position = event.position
                    if not run or event.run == run:
                        yield event.data
                if not missed_events and not await self._wait(position):
                    yield b": still here\n" + _place(position)
        finally:
            self.viewers -= 1

    async def _since(self, position: int) -> list[_Event]:
        if position >= self._position:
            return []
        if self._news and self._news[0].position <= position + 1:
            return [event for event in self._news if event.position > position][:MOST_MISSED]
        try:
            missed_records = await asyncio.to_thread(
                self._reader.read, lambda store: store.after(position, MOST_MISSED)
            )
            return [_event_of(placed) for placed in missed_records if placed.position <= self._position]
        except StoreError:
            await asyncio.sleep(POLL_S)
            return []

    async def _wait(self, position: int) -> bool:
        """Whether there is news before the next keep-alive is due."""
        if self._position > position:
            return True
        try:
            await asyncio.wait_for(self._changed.wait(), KEEP_ALIVE_S)
        except TimeoutError:
            return False
        return True


def _event_of(placed: Placed) -> _Event:
    data = as_json({"run": placed.run, **asdict(line(placed.record))})
    return _Event(placed.position, placed.run, _encode(placed.position, "record", data))


def _place(position: int) -> bytes:
    """Not an event: tells the position to catch up from, in case the viewer is cut off before the first event."""
    return b"id: %d\n\n" % max(position, 0)


def _encode(position: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), data)
