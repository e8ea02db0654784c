"""Answers of the last moment: twenty viewers of one page cost hardly more than one."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable, Hashable

FRESH_S = 0.5
MOST_KEPT = 64


class Recent:
    """Whoever asks while an answer is being made waits for that one; it is given out for half a second at most: health
    depends on the clock."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._made: OrderedDict[Hashable, tuple[float, bytes]] = OrderedDict()
        self._making: dict[Hashable, threading.Lock] = {}

    def get(self, key: Hashable, make: Callable[[], bytes]) -> bytes:
        with self._lock:
            mine = self._making.setdefault(key, threading.Lock())
        with mine:
            made_s, body = self._made.get(key, (0.0, b""))
            if time.monotonic() - made_s < FRESH_S:
                return body
            asked_s = time.monotonic()
            body = make()
            with self._lock:
                self._made[key] = (asked_s, body)
                self._made.move_to_end(key)
                while len(self._made) > MOST_KEPT:
                    old, _ = self._made.popitem(last=False)
                    self._making.pop(old, None)
            return body
