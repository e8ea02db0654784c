"""Waits for a condition, up to a deadline."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from threading import Event

_POLL_S = 0.2  # a call to the JVM takes milliseconds: five a second cost nothing


@dataclass(frozen=True, slots=True)
class Deadline:
    """The time of the monotonic clock at which a wait ends, and an event that ends every wait at once."""

    at_s: float
    cancelled: Event = field(default_factory=Event)

    @classmethod
    def after(cls, seconds: float, cancelled: Event | None = None) -> Deadline:
        return cls(time.monotonic() + seconds, cancelled or Event())

    @property
    def left_s(self) -> float:
        return 0.0 if self.cancelled.is_set() else max(0.0, self.at_s - time.monotonic())

    def at_most(self, seconds: float) -> Deadline:
        return Deadline(min(self.at_s, time.monotonic() + seconds), self.cancelled)

    def wait_until(self, holds: Callable[[], bool], poll_s: float = _POLL_S) -> bool:
        """Wait for a condition. Returns whether it became true in time."""
        while not holds():
            if self.left_s <= 0:
                return False
            self.cancelled.wait(min(poll_s, self.left_s))
        return True
