"""Answers of the last moment: twenty viewers of one page cost hardly more than one."""

from __future__ import annotations

import asyncio
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from dataclasses import dataclass

from starlette.concurrency import run_in_threadpool

from homeostat.web.responses import Body

FRESH_S = 0.5
MOST_KEPT = 64


@dataclass(frozen=True, slots=True)
class Wish:
    """An answer that is wanted. `position` tells how far the log goes now, None if there is none; both are asked in a
    thread. Whoever has only heard of what was `seen` may get any answer from then on. With `keep_s` one is given out
    for so long, whatever was written meanwhile.
    """

    key: Hashable
    position: Callable[[], int | None]
    make: Callable[[], bytes]
    seen: int | None = None
    keep_s: float = 0.0


@dataclass(frozen=True, slots=True)
class _Made:
    """`position` is how far the log went when it was made."""

    until_s: float
    position: int | None
    body: Body


class Recent:
    """Whoever asks while an answer is being made waits for that one.

    It is given out for half a second, for health depends on the clock, or for twice as long as it took to make: so a
    page that costs much never keeps the server busy all the time.
    """

    def __init__(self) -> None:
        self._made: OrderedDict[Hashable, _Made] = OrderedDict()
        self._making: dict[Hashable, asyncio.Task[_Made]] = {}

    async def get(self, wish: Wish) -> Body:
        while True:
            made = self._fresh(wish.key)
            if made is not None and (wish.keep_s or _heard(made, wish.seen)):
                return made.body
            making = self._making.get(wish.key)
            if making is not None:
                await asyncio.wait([making])
                continue
            making = asyncio.create_task(run_in_threadpool(_answer, wish, made))
            self._making[wish.key] = making
            making.add_done_callback(lambda done: self._keep(wish.key, done))
            return (await asyncio.shield(making)).body

    def _fresh(self, key: Hashable) -> _Made | None:
        made = self._made.get(key)
        return made if made is not None and time.monotonic() < made.until_s else None

    def _keep(self, key: Hashable, done: asyncio.Task[_Made]) -> None:
        self._making.pop(key, None)
        if done.cancelled() or done.exception() is not None or done.result().position is None:
            return
        self._made[key] = done.result()
        self._made.move_to_end(key)
        while len(self._made) > MOST_KEPT:
            self._made.popitem(last=False)


def _heard(made: _Made, seen: int | None) -> bool:
    return seen is not None and made.position is not None and made.position >= seen


def _answer(wish: Wish, before: _Made | None) -> _Made:
    asked_s = time.monotonic()
    position = wish.position()
    if before is not None and before.position == position:
        return before
    body = Body.of(wish.make())
    took_s = time.monotonic() - asked_s
    return _Made(asked_s + max(wish.keep_s, FRESH_S, 2 * took_s), position, body)
