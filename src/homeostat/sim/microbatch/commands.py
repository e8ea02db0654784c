"""Commands to a micro-batch engine: one after the other, step by step, until the effect is seen or time is up."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from homeostat.core.configuration import Configuration, Step
from homeostat.core.events import Apply, Receipt


class Actuator(Protocol):
    """What carries out steps. None of these may call `carry_on` themselves."""

    @property
    def now_s(self) -> float: ...

    def configuration(self) -> Configuration: ...

    def refusal(self, desired: Configuration) -> str:
        """Why this cannot be; empty if it can."""
        ...

    def steps_to(self, desired: Configuration) -> tuple[Step, ...]: ...

    def begin(self, step: Step) -> None: ...

    def took_effect(self, step: Step) -> bool: ...

    def call_off(self, step: Step) -> str:
        """Go back on a step whose time is up, as far as possible; how far it got."""
        ...


@dataclass(slots=True, eq=False)
class _Order:
    command: Apply
    steps: tuple[Step, ...] | None = None
    next_step: int = 0
    begun: bool = False


class Commands:
    """One command at a time. One that is known by its id is acknowledged again and not carried out again."""

    def __init__(
        self,
        actuator: Actuator,
        send: Callable[[Receipt], None],
        remind: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._actuator, self._send, self._remind = actuator, send, remind
        self._orders: deque[_Order] = deque()
        self._receipts: dict[str, Receipt] = {}

    def accept(self, command: Apply) -> None:
        known = self._receipts.get(command.id)
        if known is not None:
            self._acknowledge(command.id, known.applied, known.detail)
        elif all(order.command.id != command.id for order in self._orders):
            if reason := self._actuator.refusal(command.desired):
                self._acknowledge(command.id, False, reason)
                return
            order = _Order(command)
            self._orders.append(order)
            self._remind(self._actuator.now_s + command.time_limit_s, lambda: self._time_is_up(order))
            self.carry_on()

    def carry_on(self) -> None:
        """Go as far as the effects seen so far allow."""
        while self._orders:
            order = self._orders[0]
            if order.steps is None:
                order.steps = self._actuator.steps_to(order.command.desired)
            if order.next_step == len(order.steps):
                self._orders.popleft()
                self._acknowledge(order.command.id, True)
                continue
            step = order.steps[order.next_step]
            if not order.begun:
                order.begun = True
                self._actuator.begin(step)
            if not self._actuator.took_effect(step):
                return
            order.next_step, order.begun = order.next_step + 1, False

    def _time_is_up(self, order: _Order) -> None:
        if order not in self._orders:
            return
        self._orders.remove(order)
        how_far = "other commands came first"
        if order.steps is not None:
            how_far = self._actuator.call_off(order.steps[order.next_step])
        self._acknowledge(order.command.id, False, f"not done within {order.command.time_limit_s:g} s: {how_far}")
        self.carry_on()

    def _acknowledge(self, command_id: str, applied: bool, detail: str = "") -> None:
        receipt = Receipt(command_id, self._actuator.now_s, self._actuator.configuration(), applied, detail)
        self._receipts[command_id] = receipt
        self._send(receipt)
