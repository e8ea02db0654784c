"""News of the log as server-sent events: one poll for all viewers, and catch-up for whoever was cut off."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import suppress
from typing import NamedTuple

from homeostat.core.errors import StoreError
from homeostat.store.protocol import Placed
from homeostat.web.reader import Reader
from homeostat.web.responses import as_json
from homeostat.web.stories import line

POLL_S = 0.4
BREATH_S = 15.0
MOST_VIEWERS = 200
MOST_MISSED = 500
_KEPT = 2_000


class _Told(NamedTuple):
    """A record as the event that every viewer gets."""

    position: int
    run: str
    event: bytes


class Feed:
    def __init__(self, reader: Reader) -> None:
        self._reader = reader
        self._news: deque[_Told] = deque(maxlen=_KEPT)
        self._position = -1
        self._changed = asyncio.Event()
        self.viewers = 0

    async def follow(self) -> None:
        """Runs as long as the server does. A log that is not there, or locked, is asked again later."""
        while True:
            with suppress(StoreError):
                self._take(*await asyncio.to_thread(self._poll, self._position))
            await asyncio.sleep(POLL_S)

    def _poll(self, position: int) -> tuple[int, list[_Told]]:
        """How far the log goes now, and what is new."""
        newest = self._reader.read(lambda store: store.position())
        if not 0 <= position <= newest:
            return newest, []
        fresh = [_told(placed) for placed in self._reader.read(lambda store: store.after(position, MOST_MISSED))]
        return (fresh[-1].position if fresh else position), fresh

    def _take(self, position: int, fresh: list[_Told]) -> None:
        if position == self._position:
            return
        if not fresh:  # the first look, or another log in place of the one before
            self._news.clear()
        self._position = position
        self._news.extend(fresh)
        told, self._changed = self._changed, asyncio.Event()
        told.set()

    async def stream(self, run: str, after: int | None) -> AsyncIterator[bytes]:
        """Events of a run, or of all; `after` is the last one that the viewer has seen. Whoever missed too much, or has
        seen what this log does not have, is told to read anew."""
        self.viewers += 1
        try:
            position = self._position if after is None else after
            yield b"retry: 1000\n" + _place(position)
            while True:
                missed = await self._since(position)
                if len(missed) >= MOST_MISSED or 0 <= self._position < position:
                    position, missed = self._position, []
                    yield _event(position, "reset", b"{}")
                for told in missed:
                    position = told.position
                    if not run or told.run == run:
                        yield told.event
                if not missed and not await self._wait(position):
                    yield b": still here\n" + _place(position)
        finally:
            self.viewers -= 1

    async def _since(self, position: int) -> list[_Told]:
        if position >= self._position:
            return []
        if self._news and self._news[0].position <= position + 1:
            return [told for told in self._news if told.position > position][:MOST_MISSED]
        try:
            found = await asyncio.to_thread(lambda: self._reader.read(lambda store: store.after(position, MOST_MISSED)))
            return [_told(placed) for placed in found if placed.position <= self._position]
        except StoreError:
            await asyncio.sleep(POLL_S)
            return []

    async def _wait(self, position: int) -> bool:
        """Whether there is news before a breath is due."""
        if self._position > position:
            return True
        try:
            await asyncio.wait_for(self._changed.wait(), BREATH_S)
        except TimeoutError:
            return False
        return True


def _told(placed: Placed) -> _Told:
    data = as_json({"run": placed.run, **line(placed.record)})
    return _Told(placed.position, placed.run, _event(placed.position, "record", data))


def _place(position: int) -> bytes:
    """No event, but from where on to catch up for whoever is cut off before there is one."""
    return b"id: %d\n\n" % max(position, 0)


def _event(position: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), data)
