"""An engine: sensors, actuator and capabilities of something that runs a streaming application."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from homeostat.core.events import Apply, EngineChanged, Event


class Engine(Protocol):
    """Spark, or a simulation of it. The loop is the same for every engine."""

    @property
    def now_s(self) -> float:
        """The engine's clock: real time, or simulated time."""
        ...

    def describe(self) -> EngineChanged:
        """Return the topology, the configuration and the capabilities."""
        ...

    def wait(self, until_s: float) -> Sequence[Event]:
        """Let time pass until `until_s` and return what happened meanwhile, in order."""
        ...

    def apply(self, command: Apply) -> None:
        """Start to apply the desired configuration; the receipt arrives as an event.

        A repeated command, or one for the present configuration, changes nothing and is still acknowledged.
        """
        ...

    def close(self) -> None: ...
