"""An engine: sensors, actuator and capabilities of something that runs a streaming application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from homeostat.core.events import Apply, EngineChanged, Event


class Engine(Protocol):
    """Spark, or a simulation of one. Everything between an engine's two ends is the same for all of them."""

    @property
    def now_s(self) -> float:
        """The engine's clock: the wall's, or a simulated one."""
        ...

    def describe(self) -> EngineChanged:
        """What it is, what it runs and what it can do."""
        ...

    def wait(self, until_s: float) -> Sequence[Event]:
        """Let time pass until `until_s`; what happened on the way, in order."""
        ...

    def apply(self, command: Apply) -> None:
        """Start bringing the engine to the desired configuration; the receipt arrives as an event.

        Repeating a command, or asking for what already is, changes nothing and is acknowledged all the same.
        """
        ...

    def close(self) -> None: ...
