"""Runs commands on a Spark application, one at a time, and answers each with the configuration observed afterwards."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from threading import Condition, Thread
from threading import Event as Signal

from homeostat.core.command_queue import Answer, CommandQueue, QueuedCommand
from homeostat.core.configuration import Capabilities, Configuration
from homeostat.core.events import Apply, Event, Failure
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors
from homeostat.spark.act.locality import Locality, Worked
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.step_runner import StepRunner
from homeostat.spark.clocks import STEADY
from homeostat.spark.undone_work import UndoneWork
from homeostat.spark_errors import first_line

# How often idle threads look for work: rare enough to cost nothing, often enough to restart a failed query soon.
_LOOK_S = 1.0


class Actuator:
    """Runs commands in its own thread, so that callers do not wait. A second thread restarts failed queries.

    `executors` is None where Homeostat cannot control them. `worked` returns the executors that have run tasks of the
    slowest stage. A new executor counts as working only after that.
    """

    def __init__(
        self,
        executors: Executors | None,
        queries: Sequence[ManagedQuery],
        locality: Locality | None,
        capabilities: Callable[[], Capabilities],
        worked: Worked,
        emit: Callable[[Event], None],
    ) -> None:
        self._queries, self._emit = queries, emit
        self._stopped = Signal()
        self._runner = StepRunner(executors, queries, locality, capabilities, worked, self._stopped)
        self._queue = CommandQueue(lambda desired: capabilities().refusal(desired))
        self._queue_changed = Condition()
        self._receipts = UndoneWork(emit)
        self._threads = [
            Thread(target=self._run_commands, name="homeostat-actuator", daemon=True),
            Thread(target=self._tend_queries, name="homeostat-queries", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 30.0) -> None:
        """Cancel the running command. Queries and executors stay as they are."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(timeout_s)

    def apply(self, command: Apply) -> None:
        """Queue a command. Returns at once and never raises. A repeated command gets its first answer again."""
        self._guard("command", partial(self._accept, command))

    @property
    def busy(self) -> bool:
        """Whether a command is running or waiting."""
        return not self._queue.idle

    def configuration(self) -> Configuration:
        return self._runner.configuration()

    def _accept(self, command: Apply) -> None:
        with self._queue_changed:
            answer = self._queue.submit(command, time.monotonic())
            self._queue_changed.notify()
        if answer is not None:
            self._acknowledge(command.id, answer)

    def _run_commands(self) -> None:
        while not self._stopped.is_set():
            with self._queue_changed:
                self._queue_changed.wait_for(lambda: not self._queue.idle, timeout=_LOOK_S)
                queued = self._queue.begin_next()
            if queued is not None:
                self._run(queued)
            self._receipts.retry()
            self._guard("executors", self._runner.trim)

    def _run(self, queued: QueuedCommand) -> None:
        answer = self._runner.run(queued.command, Deadline(queued.deadline_s, self._stopped))
        with self._queue_changed:
            self._queue.answer(queued.id, answer)
        self._acknowledge(queued.id, answer)

    def _acknowledge(self, command_id: str, answer: Answer) -> None:
        """A receipt that cannot be sent now is sent later, because without it the loop would assume the old
        configuration."""
        self._receipts.do(f"receipt of {command_id}", partial(self._send_receipt, command_id, answer))

    def _send_receipt(self, command_id: str, answer: Answer) -> None:
        self._emit(answer.receipt(command_id, STEADY.now_s(), self.configuration()))

    def _tend_queries(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            for query in self._queries:
                self._guard(f"query {query.name}", partial(self._tend, query))

    def _tend(self, query: ManagedQuery) -> None:
        if report := query.tend():
            self._emit(Failure(f"query {query.name}", report, STEADY.now_s()))

    def _guard(self, where: str, do: Callable[[], None]) -> None:
        """Turn an exception into a Failure event, so that the thread continues."""
        try:
            do()
        except Exception as error:
            self._emit(Failure(where, first_line(error), STEADY.now_s()))
