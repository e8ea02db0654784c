"""News of the log as server-sent events: one poll for all viewers, and catch-up for whoever was cut off."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from typing import NamedTuple

from homeostat.core.errors import StoreError
from homeostat.store.protocol import Placed
from homeostat.web.answers import as_json
from homeostat.web.reader import Reader
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
            try:
                fresh = await asyncio.to_thread(self._poll)
            except StoreError:
                fresh = []
            if fresh:
                self._news.extend(map(_told, fresh))
                told, self._changed = self._changed, asyncio.Event()
                told.set()
            await asyncio.sleep(POLL_S)

    def _poll(self) -> list[Placed]:
        newest = self._reader.read(lambda store: store.position())
        if not 0 <= self._position <= newest:  # the first look, or another log in place of the one before
            self._position = newest
            return []
        fresh = self._reader.read(lambda store: store.after(self._position, MOST_MISSED))
        if fresh:
            self._position = fresh[-1].position
        return fresh

    async def stream(self, run: str, after: int | None) -> AsyncIterator[bytes]:
        """Events of a run, or of all; `after` is the last one that the viewer has seen."""
        self.viewers += 1
        try:
            position = self._position if after is None else after
            yield b"retry: 1000\n\n"
            while True:
                missed = await self._since(position)
                if len(missed) >= MOST_MISSED:
                    position = self._position
                    yield _event(position, "reset", b"{}")
                for told in missed if len(missed) < MOST_MISSED else ():
                    position = told.position
                    if not run or told.run == run:
                        yield told.event
                if not missed and not await self._wait(position):
                    yield b": still here\n\n"
        finally:
            self.viewers -= 1

    async def _since(self, position: int) -> list[_Told]:
        if position >= self._position:
            return []
        if self._news and self._news[0].position <= position + 1:
            return [told for told in self._news if told.position > position][:MOST_MISSED]
        try:
            found = await asyncio.to_thread(lambda: self._reader.read(lambda store: store.after(position, MOST_MISSED)))
            return [_told(placed) for placed in found]
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


def _event(position: int, name: str, data: bytes) -> bytes:
    return b"id: %d\nevent: %s\ndata: %s\n\n" % (position, name.encode(), data)
