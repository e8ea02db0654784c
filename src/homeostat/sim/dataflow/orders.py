"""Commands to a dataflow: one after the other, each answered once its effect shows or its time is up."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass
from typing import Protocol

from homeostat.core.configuration import Configuration
from homeostat.core.events import Apply, Receipt

_ROUNDING_S = 1e-9


class Plant(Protocol):
    """What orders change. A change is begun as a whole, and then either finished or abandoned."""

    @property
    def configuration(self) -> Configuration: ...

    def refusal(self, desired: Configuration) -> str:
        """Why this cannot be; empty if it can."""
        ...

    def begin(self, desired: Configuration, now_s: float) -> float:
        """Start the change; the seconds until it is done, 0 if it is done already."""
        ...

    def finish(self, now_s: float) -> None: ...

    def abandon(self, now_s: float) -> None:
        """Put back what was before the change began."""
        ...


@dataclass(frozen=True, slots=True)
class _Order:
    command: Apply
    deadline_s: float


class Orders:
    """The commands given to a plant. A repeated one is answered again and does nothing."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._answers: dict[str, tuple[bool, str]] = {}
        self._queue: deque[_Order] = deque()
        self._running: _Order | None = None
        self._ready_s = 0.0

    @property
    def idle(self) -> bool:
        return self._running is None and not self._queue

    def submit(self, command: Apply, now_s: float) -> list[Receipt]:
        if command.id in self._answers:
            return [self._receipt(command, now_s)]
        if any(command.id == order.command.id for order in (*self._queue, self._running) if order):
            return []
        if reason := self._plant.refusal(command.desired):
            return [self._answer(command, now_s, applied=False, detail=reason)]
        self._queue.append(_Order(command, now_s + command.time_limit_s))
        return self._start(now_s)

    def poll(self, now_s: float) -> list[Receipt]:
        """What was done, or ran out of time, by now."""
        receipts = []
        if self._running is not None:
            command, deadline_s = self._running.command, self._running.deadline_s
            if self._ready_s <= min(now_s, deadline_s) + _ROUNDING_S:
                self._running = None
                self._plant.finish(now_s)
                receipts.append(self._answer(command, now_s, applied=True))
            elif deadline_s <= now_s + _ROUNDING_S:
                self._running = None
                self._plant.abandon(now_s)
                receipts.append(self._late(command, now_s))
        return receipts + self._start(now_s)

    def _start(self, now_s: float) -> list[Receipt]:
        receipts = []
        for order in [order for order in self._queue if order.deadline_s < now_s - _ROUNDING_S]:
            self._queue.remove(order)
            receipts.append(self._late(order.command, now_s))
        while self._running is None and self._queue:
            order = self._queue.popleft()
            seconds = self._plant.begin(order.command.desired, now_s)
            if seconds <= 0:
                receipts.append(self._answer(order.command, now_s, applied=True))
            else:
                self._running, self._ready_s = order, now_s + seconds
        return receipts

    def _late(self, command: Apply, now_s: float) -> Receipt:
        detail = f"not done within {command.time_limit_s:g} s; the configuration is as before"
        return self._answer(command, now_s, applied=False, detail=detail)

    def _answer(self, command: Apply, now_s: float, *, applied: bool, detail: str = "") -> Receipt:
        self._answers[command.id] = applied, detail
        return self._receipt(command, now_s)

    def _receipt(self, command: Apply, now_s: float) -> Receipt:
        applied, detail = self._answers[command.id]
        return Receipt(command.id, now_s, self._plant.configuration, applied, detail)
