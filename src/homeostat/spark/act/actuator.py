"""Carries out commands on a Spark application: one after the other, each answered by what was then observed."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from queue import Empty, SimpleQueue
from threading import Event as Signal
from threading import Lock, Thread
from typing import NamedTuple

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    Capabilities,
    Configuration,
    Knob,
    Replace,
    Restart,
    SetLive,
    Step,
    Value,
    diff,
)
from homeostat.core.errors import HomeostatError
from homeostat.core.events import Apply, Event, Failure, Receipt
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors
from homeostat.spark.act.locality import Locality, Worked
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark_errors import first_line

_LOOK_S = 1.0
# By then state has spread as far as it will: more executors than partitions can never all have worked.
_BATCHES_TO_SPREAD = 4
_UNDO_S = 60.0


@dataclass(slots=True)
class _Progress:
    """How far a command has got."""

    deadline: Deadline
    fresh: frozenset[str] = frozenset()
    remarks: list[str] = field(default_factory=list)
    warning: str = ""
    undos: list[Callable[[], object]] = field(default_factory=list)


class _Answer(NamedTuple):
    """Whether a command took effect, what there is to say about it, and what of that a person should know."""

    applied: bool
    detail: str
    warning: str = ""


class Actuator:
    """Its own thread, so that nobody waits for it; another one starts queries again that fail.

    `executors` is None where they cannot be steered. `worked` tells which of some executors have run tasks of the
    stage that takes the longest: a fresh one counts only then.
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
        self._executors, self._queries, self._locality = executors, queries, locality
        self._capabilities, self._worked, self._emit = capabilities, worked, emit
        self._orders: SimpleQueue[tuple[Apply, Deadline]] = SimpleQueue()
        self._answers: dict[str, _Answer] = {}
        self._pending: set[str] = set()
        self._lock = Lock()
        self._stopped = Signal()
        self._threads = [
            Thread(target=self._carry_out, name="homeostat-actuator", daemon=True),
            Thread(target=self._tend, name="homeostat-queries", daemon=True),
        ]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def stop(self, timeout_s: float = 30.0) -> None:
        """What is under way is called off; the queries and executors stay as they are."""
        self._stopped.set()
        for thread in self._threads:
            thread.join(timeout_s)

    def apply(self, command: Apply) -> None:
        """Returns at once and never raises. A command that is known by its id is answered again, not done again."""
        self._guarded("command", partial(self._accept, command))

    @property
    def busy(self) -> bool:
        """Whether a command is under way or waits."""
        return bool(self._pending)

    def configuration(self) -> Configuration:
        """What runs now: executors that take tasks and stay, and what every query was started with."""
        values: dict[Knob, Value] = {}
        retired: frozenset[str] = frozenset()
        if self._executors is not None:
            values[EXECUTORS_KNOB] = self._executors.staying()
            retired = self._executors.retired
        elif (fixed := self._capabilities().knobs.get(EXECUTORS_KNOB)) is not None:
            values[EXECUTORS_KNOB] = fixed.minimum
        for query in self._queries:
            values |= query.values
        return Configuration(values, retired)

    def _accept(self, command: Apply) -> None:
        with self._lock:
            if command.id in self._pending:
                return
            if command.id not in self._answers and (reason := self._capabilities().refusal(command.desired)):
                self._answers[command.id] = _Answer(False, reason)
            if command.id not in self._answers:
                self._pending.add(command.id)
                self._orders.put((command, Deadline.after(command.time_limit_s, self._stopped)))
                return
        self._acknowledge(command.id)

    # In the actuator's own thread

    def _carry_out(self) -> None:
        while not self._stopped.is_set():
            try:
                command, deadline = self._orders.get(timeout=_LOOK_S)
            except Empty:
                pass
            else:
                self._answer(command, deadline)
            self._guarded("executors", self._trim)

    def _answer(self, command: Apply, deadline: Deadline) -> None:
        self._answers[command.id] = self._outcome(command, deadline)
        with self._lock:
            self._pending.discard(command.id)
        self._guarded("receipt", partial(self._acknowledge, command.id))

    def _outcome(self, command: Apply, deadline: Deadline) -> _Answer:
        progress = _Progress(deadline)
        try:
            if self._executors is not None:
                self._executors.hold()
            for step in diff(self._seen(), command.desired, self._capabilities()):
                if deadline.left_s <= 0:
                    raise HomeostatError("other commands came first, or earlier steps took all of it")
                self._do(step, progress)
            self._spread(progress)
            if self._executors is not None:
                self._executors.see_them_gone()
        except Exception as error:
            late = f"not done within {command.time_limit_s:g} s: " if deadline.left_s <= 0 else ""
            undos = [] if self._stopped.is_set() else progress.undos[::-1]
            not_undone = [self._undo(undo) for undo in undos]
            return _Answer(False, "; ".join(filter(None, (late + first_line(error), *not_undone))))
        return _Answer(True, "; ".join(filter(None, (progress.warning, *progress.remarks))), progress.warning)

    def _seen(self) -> Configuration:
        """What is on its way counts as well: the number up may be the one desired, and about to change."""
        seen = self.configuration()
        if self._executors is not None and self._executors.target != seen[EXECUTORS_KNOB]:
            return Configuration({**seen.values, EXECUTORS_KNOB: 0}, seen.retired)
        return seen

    def _do(self, step: Step, progress: _Progress) -> None:
        match step:
            case SetLive(values):
                self._admit(values, progress)
                if EXECUTORS_KNOB in values:
                    self._scale(int(values[EXECUTORS_KNOB]), progress)
            case Replace(workers):
                self._replace(workers, progress)
            case Restart(values):
                self._restart(values, progress)

    def _admit(self, values: Mapping[Knob, Value], progress: _Progress) -> None:
        for query in self._queries:
            knob = Knob(ROWS_PER_TRIGGER, query.name)
            if knob in values and query.listens:
                before = query.values.get(knob)
                query.admit(int(values[knob]), progress.deadline)
                if before is not None:
                    progress.undos.append(partial(_admit_again, query, int(before)))

    def _scale(self, count: int, progress: _Progress) -> None:
        executors = self._executors
        assert executors is not None
        before = executors.target
        if count < len(executors.alive()):
            executors.shrink(count, self._batch_ends, progress.deadline)
        else:
            progress.fresh |= executors.grow(count, progress.deadline)
        progress.undos.append(partial(self._scale_back, before))

    def _scale_back(self, count: int) -> None:
        assert self._executors is not None
        if count < len(self._executors.alive()):
            self._executors.shrink(count, self._batch_ends, Deadline.after(_UNDO_S, self._stopped))
        else:
            self._executors.request(count)

    def _replace(self, workers: frozenset[str], progress: _Progress) -> None:
        executors = self._executors
        assert executors is not None
        before = executors.ids()
        full = executors.target >= self._capabilities().knobs[EXECUTORS_KNOB].maximum
        progress.warning = executors.replace(workers, self._batch_ends, progress.deadline, full=full)
        progress.fresh |= executors.ids() - before - executors.late()

    def _restart(self, values: Mapping[Knob, Value], progress: _Progress) -> None:
        for query in self._queries:
            mine = {knob: value for knob, value in values.items() if knob.scope.split("/")[0] == query.name}
            if mine:
                before = {knob: query.values[knob] for knob in mine if knob in query.values}
                progress.remarks.append(query.restart(mine, progress.deadline))
                progress.undos.append(partial(_restart_again, query, before))

    def _spread(self, progress: _Progress) -> None:
        """Let the fresh executors take part in the work, which locality would keep from them."""
        if self._locality is None or not progress.fresh:
            return
        done = {query: query.batches() for query in self._queries if query.active}

        def enough() -> bool:
            return all(query.batches() >= before + _BATCHES_TO_SPREAD for query, before in done.items())

        progress.remarks.append(self._locality.spread(progress.fresh, self._worked, enough, progress.deadline))

    def _batch_ends(self) -> Callable[[], bool]:
        ends = [query.batch_end() for query in self._queries]
        return lambda: all(ended() for ended in ends)

    def _undo(self, undo: Callable[[], object]) -> str:
        try:
            undo()
        except Exception as error:
            return f"an earlier step could not be taken back: {first_line(error)}"
        return ""

    def _trim(self) -> None:
        if self._executors is not None:
            self._executors.trim(self._batch_ends, Deadline.after(_UNDO_S, self._stopped))

    def _acknowledge(self, id: str) -> None:
        self._emit(Receipt(id, time.time(), self.configuration(), *self._answers[id]))

    # In the thread that tends the queries

    def _tend(self) -> None:
        while not self._stopped.wait(_LOOK_S):
            for query in self._queries:
                self._guarded(f"query {query.name}", partial(self._look_after, query))

    def _look_after(self, query: ManagedQuery) -> None:
        if report := query.tend():
            self._emit(Failure(f"query {query.name}", report, time.time()))

    def _guarded(self, where: str, do: Callable[[], None]) -> None:
        """Nothing that goes wrong here ends the thread, and nobody else hears of it but as an event."""
        try:
            do()
        except Exception as error:
            self._emit(Failure(where, first_line(error), time.time()))


def _admit_again(query: ManagedQuery, rows: int) -> None:
    query.admit(rows, Deadline.after(_UNDO_S))


def _restart_again(query: ManagedQuery, values: Mapping[Knob, Value]) -> None:
    query.restart(values, Deadline.after(_UNDO_S))
