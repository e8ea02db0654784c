"""Answers of the last moment: twenty viewers of one page cost hardly more than one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import NamedTuple

FRESH_S = 0.5
MOST_KEPT = 64


class _Made(NamedTuple):
    """`position` is how far the log went when it was made."""

    until_s: float
    position: int
    body: bytes


class Recent:
    """Whoever asks while an answer is being made waits for that one.

    It is given out for half a second, for health depends on the clock, or for twice as long as it took to make: so a
    page that costs much never keeps the server busy all the time.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, _Made] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(
        self, key: Hashable, position: int, make: Callable[[], bytes], *, seen: int | None = None, keep_s: float = 0.0
    ) -> bytes:
        """The log goes to `position` now; whoever has only heard of what was `seen` may get an answer from then on.
        With `keep_s` it is given out for so long, whatever was written meanwhile."""
        with self._lock:
            mine = self._making.setdefault(key, threading.Lock())
        with mine:
            made = self._made.get(key)
            if made is not None and time.monotonic() < made.until_s:
                new_enough = made.position == position if seen is None else made.position >= seen
                if new_enough or keep_s:
                    return made.body
            asked_s = time.monotonic()
            body = make()
            took_s = time.monotonic() - asked_s
            with self._lock:
                until_s = asked_s + max(keep_s, FRESH_S, 2 * took_s)
                self._made[key] = _Made(until_s, position, body)
                self._made.move_to_end(key)
                while len(self._made) > MOST_KEPT:
                    old, _ = self._made.popitem(last=False)
                    self._making.pop(old, None)
            return body
