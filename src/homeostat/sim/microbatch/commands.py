"""Commands to a simulated micro-batch engine: one at a time, step by step, until the effect shows or time is up."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

from homeostat.core.command_queue import Answer, CommandQueue
from homeostat.core.configuration import Configuration, Step
from homeostat.core.events import Apply, Receipt


class StepEngine(Protocol):
    """The engine that carries out the steps. None of its methods may call `carry_on`."""

    @property
    def now_s(self) -> float: ...

    def configuration(self) -> Configuration: ...

    def refusal(self, desired: Configuration) -> str:
        """Why this configuration is impossible; empty if it is possible."""
        ...

    def steps_to(self, desired: Configuration) -> tuple[Step, ...]: ...

    def begin(self, step: Step) -> None: ...

    def took_effect(self, step: Step) -> bool: ...

    def call_off(self, step: Step) -> str:
        """Undo a step whose time is up, as far as possible. Returns how far the step got."""
        ...


@dataclass(slots=True)
class _Progress:
    """How far the running command is."""

    command: Apply
    steps: tuple[Step, ...]
    next_step: int = 0
    begun: bool = False

    @property
    def step(self) -> Step:
        return self.steps[self.next_step]

    @property
    def is_done(self) -> bool:
        return self.next_step == len(self.steps)


class MicrobatchCommands:
    """The commands to one engine. `remind` calls a function at a later time."""

    def __init__(
        self,
        engine: StepEngine,
        send: Callable[[Receipt], None],
        remind: Callable[[float, Callable[[], None]], None],
    ) -> None:
        self._engine, self._send, self._remind = engine, send, remind
        self._queue = CommandQueue(engine.refusal)
        self._progress: _Progress | None = None

    def accept(self, command: Apply) -> None:
        if self._queue.is_pending(command.id):
            return
        answer = self._queue.submit(command, self._engine.now_s)
        if answer is not None:
            self._send_receipt(command, answer)
            return
        self._remind(self._engine.now_s + command.time_limit_s, lambda: self._time_is_up(command))
        self.carry_on()

    def carry_on(self) -> None:
        """Carry out the next steps, until one has not taken effect yet."""
        while (progress := self._current()) is not None:
            if progress.is_done:
                self._answer(progress.command, Answer(True))
                continue
            if not progress.begun:
                progress.begun = True
                self._engine.begin(progress.step)
            if not self._engine.took_effect(progress.step):
                return
            progress.next_step, progress.begun = progress.next_step + 1, False

    def _current(self) -> _Progress | None:
        """The running command, or the next one if none is running."""
        if self._progress is None and (command := self._queue.begin_next()) is not None:
            self._progress = _Progress(command.command, self._engine.steps_to(command.command.desired))
        return self._progress

    def _time_is_up(self, command: Apply) -> None:
        if not self._queue.is_pending(command.id):
            return
        how_far = "other commands used up the time limit"
        if self._progress is not None and self._progress.command.id == command.id:
            how_far = self._engine.call_off(self._progress.step)
        self._answer(command, Answer.late(command, how_far))
        self.carry_on()

    def _answer(self, command: Apply, answer: Answer) -> None:
        if self._progress is not None and self._progress.command.id == command.id:
            self._progress = None
        self._queue.answer(command.id, answer)
        self._send_receipt(command, answer)

    def _send_receipt(self, command: Apply, answer: Answer) -> None:
        self._send(answer.receipt(command.id, self._engine.now_s, self._engine.configuration()))
