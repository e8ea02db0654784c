"""Commands to a simulated dataflow: one at a time, each answered when its effect shows or its time limit passes."""

from __future__ import annotations

from typing import Protocol

from homeostat.core.command_queue import Answer, CommandQueue
from homeostat.core.configuration import Configuration
from homeostat.core.events import Apply, Receipt

_ROUNDING_S = 1e-9  # sums of steps differ from the exact time by less than this


class Plant(Protocol):
    """The system that the commands change. A change begins as a whole, and is then either finished or abandoned."""

    @property
    def configuration(self) -> Configuration: ...

    def refusal(self, desired: Configuration) -> str:
        """Why this configuration is impossible; empty if it is possible."""
        ...

    def begin(self, desired: Configuration, now_s: float) -> float:
        """Start the change. Returns the seconds until it is done, 0 if it is done already."""
        ...

    def finish(self, now_s: float) -> None: ...

    def abandon(self, now_s: float) -> None:
        """Restore the state before the change."""
        ...


class DataflowCommands:
    """The commands to one plant."""

    def __init__(self, plant: Plant) -> None:
        self._plant = plant
        self._queue = CommandQueue(plant.refusal)
        self._ready_s = 0.0

    @property
    def idle(self) -> bool:
        return self._queue.idle

    def submit(self, command: Apply, now_s: float) -> list[Receipt]:
        if self._queue.is_pending(command.id):
            return []
        answer = self._queue.submit(command, now_s)
        if answer is not None:
            return [self._receipt(command, answer, now_s)]
        return self._start(now_s)

    def poll(self, now_s: float) -> list[Receipt]:
        """The receipts of the commands that were carried out, or ran out of time, by now."""
        receipts = []
        running = self._queue.running
        if running is not None:
            if self._ready_s <= min(now_s, running.deadline_s) + _ROUNDING_S:
                self._plant.finish(now_s)
                receipts.append(self._answer(running.command, Answer(True), now_s))
            elif running.deadline_s <= now_s + _ROUNDING_S:
                self._plant.abandon(now_s)
                receipts.append(self._late(running.command, now_s))
        return receipts + self._start(now_s)

    def _start(self, now_s: float) -> list[Receipt]:
        receipts = [self._late(command.command, now_s) for command in self._queue.overdue(now_s - _ROUNDING_S)]
        while (command := self._queue.begin_next()) is not None:
            seconds = self._plant.begin(command.command.desired, now_s)
            if seconds <= 0:
                receipts.append(self._answer(command.command, Answer(True), now_s))
            else:
                self._ready_s = now_s + seconds
        return receipts

    def _late(self, command: Apply, now_s: float) -> Receipt:
        return self._answer(command, Answer.late(command, "the previous configuration was kept"), now_s)

    def _answer(self, command: Apply, answer: Answer, now_s: float) -> Receipt:
        self._queue.answer(command.id, answer)
        return self._receipt(command, answer, now_s)

    def _receipt(self, command: Apply, answer: Answer, now_s: float) -> Receipt:
        return answer.receipt(command.id, now_s, self._plant.configuration)
