"""The queue of commands in front of an engine: each command runs at most once, and one at a time.

It has no clock and no threads. The caller passes the time in, and takes a lock where several threads use one queue.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable
from dataclasses import dataclass

from homeostat.core.configuration import Configuration
from homeostat.core.events import Apply, Receipt

# How many answers are remembered for repeated commands, which arrive soon or never. A choice.
ANSWERS_KEPT = 1_000
Refusal = Callable[[Configuration], str]
"""Why the engine cannot run a configuration; empty if it can."""


@dataclass(frozen=True, slots=True)
class Answer:
    """Whether a command took effect, the details, and a warning for people even if it did."""

    applied: bool
    detail: str = ""
    warning: str = ""

    @classmethod
    def late(cls, command: Apply, detail: str) -> Answer:
        return cls(False, f"not done within {command.time_limit_s:g} s: {detail}")

    def receipt(self, command_id: str, at_s: float, configuration: Configuration) -> Receipt:
        return Receipt(command_id, at_s, configuration, self.applied, self.detail, self.warning)


@dataclass(frozen=True, slots=True)
class QueuedCommand:
    """A command that has no answer yet, and when its time limit passes."""

    command: Apply
    deadline_s: float

    @property
    def id(self) -> str:
        return self.command.id


class CommandQueue:
    """Commands in the order of arrival. Commands are identified by their id: a repeated command gets the first answer
    again.
    """

    def __init__(self, refusal: Refusal) -> None:
        self._refusal = refusal
        self._answers: dict[str, Answer] = {}
        self._waiting: deque[QueuedCommand] = deque()
        self._running: QueuedCommand | None = None

    @property
    def running(self) -> QueuedCommand | None:
        return self._running

    @property
    def idle(self) -> bool:
        return self._running is None and not self._waiting

    def submit(self, command: Apply, now_s: float) -> Answer | None:
        """Queue a command. Returns an answer if there is one at once: from before, or because it is impossible."""
        if self.is_pending(command.id):
            return None
        if command.id not in self._answers:
            reason = self._refusal(command.desired)
            if not reason:
                self._waiting.append(QueuedCommand(command, now_s + command.time_limit_s))
                return None
            self._remember(command.id, Answer(False, reason))
        return self._answers[command.id]

    def is_pending(self, command_id: str) -> bool:
        """Whether it was submitted and has no answer yet."""
        running = self._running is not None and self._running.id == command_id
        return running or any(command.id == command_id for command in self._waiting)

    def begin_next(self) -> QueuedCommand | None:
        """Start the oldest waiting command. None if another one is running, or none waits."""
        if self._running is not None or not self._waiting:
            return None
        self._running = self._waiting.popleft()
        return self._running

    def overdue(self, now_s: float) -> tuple[QueuedCommand, ...]:
        """The waiting commands whose time limit passed before `now_s`."""
        return tuple(command for command in self._waiting if command.deadline_s < now_s)

    def answer(self, command_id: str, answer: Answer) -> None:
        """Record the only answer of a pending command. The queue forgets the command itself."""
        if not self.is_pending(command_id):
            raise ValueError(f"command {command_id!r} is not pending")
        if self._running is not None and self._running.id == command_id:
            self._running = None
        else:
            self._waiting = deque(command for command in self._waiting if command.id != command_id)
        self._remember(command_id, answer)

    def _remember(self, command_id: str, answer: Answer) -> None:
        self._answers[command_id] = answer
        while len(self._answers) > ANSWERS_KEPT:
            del self._answers[next(iter(self._answers))]
