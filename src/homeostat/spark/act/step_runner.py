"""Carries out the steps of one command on the executors and queries, and undoes them if a later step fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from threading import Event as Signal

from homeostat.core.command_queue import Answer
from homeostat.core.configuration import (
    EXECUTORS_KNOB,
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
from homeostat.core.events import Apply
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors, Growth
from homeostat.spark.act.live_knobs import LIVE_KINDS
from homeostat.spark.act.locality import Locality, Worked
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark_errors import first_line

# After this many batches, state has spread as far as it will. With more executors than partitions, some never get any.
_BATCHES_TO_SPREAD = 4
# Undoing a step has its own time limit, because the limit of the command may have passed already.
_UNDO_S = 60.0


@dataclass(slots=True)
class _Progress:
    """What the command has done so far. `growth` is its unfinished request for executors, if any. `fresh` are the
    executors that it started."""

    deadline: Deadline
    growth: Growth | None = None
    fresh: frozenset[str] = frozenset()
    remarks: list[str] = field(default_factory=list)
    warning: str = ""
    undos: list[Callable[[], object]] = field(default_factory=list)


class StepRunner:
    """Not thread-safe: only the actuator's thread may call `run` and `trim`."""

    def __init__(
        self,
        executors: Executors | None,
        queries: Sequence[ManagedQuery],
        locality: Locality | None,
        capabilities: Callable[[], Capabilities],
        worked: Worked,
        stopped: Signal,
    ) -> None:
        self._executors, self._queries, self._locality = executors, queries, locality
        self._capabilities, self._worked, self._stopped = capabilities, worked, stopped

    def configuration(self) -> Configuration:
        """The current configuration: how many executors take tasks and stay, and the values of every query."""
        values: dict[Knob, Value] = {}
        retired: frozenset[str] = frozenset()
        if self._executors is not None:
            values[EXECUTORS_KNOB] = self._executors.staying()
            retired = self._executors.retired.ids
        elif (spec := self._capabilities().knobs.get(EXECUTORS_KNOB)) is not None:
            values[EXECUTORS_KNOB] = spec.minimum
        for query in self._queries:
            values |= query.values
        return Configuration(values, retired)

    def run(self, command: Apply, deadline: Deadline) -> Answer:
        progress = _Progress(deadline)
        try:
            if self._executors is not None:
                self._executors.hold()
            for step in diff(self._starting_point(), command.desired, self._capabilities()):
                if deadline.left_s <= 0:
                    raise HomeostatError("other commands or earlier steps used up the time limit")
                self._do(step, progress)
            self._finish_growth(progress)
            self._spread(progress)
            if self._executors is not None:
                self._executors.see_them_gone()
        except Exception as error:
            late = deadline.left_s <= 0
            undos = [] if self._stopped.is_set() else self._undos(progress)
            detail = _join(first_line(error), *(_undo(undo) for undo in undos))
            return Answer.late(command, detail) if late else Answer(False, detail)
        return Answer(True, _join(progress.warning, *progress.remarks), progress.warning)

    def trim(self) -> None:
        """End the executors that an earlier command left over."""
        if self._executors is not None:
            self._executors.trim(self._batch_ends, Deadline.after(_UNDO_S, self._stopped))

    def _starting_point(self) -> Configuration:
        """The current configuration. While Spark starts or ends executors, their number is given as 0, which is never
        the desired one: the actual number may happen to be the desired one, but it is about to change."""
        observed = self.configuration()
        if self._executors is not None and self._executors.target != observed[EXECUTORS_KNOB]:
            return Configuration({**observed.values, EXECUTORS_KNOB: 0}, observed.retired)
        return observed

    def _do(self, step: Step, progress: _Progress) -> None:
        match step:
            case SetLive(values):
                self._grow(values, progress)
                self._change_live(values, progress)
                self._shrink(values, progress)
            case Replace(workers):
                self._replace(workers, progress)
            case Restart(values):
                self._finish_growth(progress)
                self._restart(values, progress)

    def _change_live(self, values: Mapping[Knob, Value], progress: _Progress) -> None:
        for query in self._queries:
            new = {
                knob: value for knob, value in values.items() if knob.query == query.name and knob.kind in LIVE_KINDS
            }
            if new:
                before = {knob: query.values[knob] for knob in new if knob in query.values}
                progress.remarks.append(query.change_live(new, progress.deadline))
                if before:
                    progress.undos.append(partial(_change_again, query, before))

    def _grow(self, values: Mapping[Knob, Value], progress: _Progress) -> None:
        """Request more executors before anything else, because they take longest, and wait for them later."""
        executors, count = self._executors, int(values.get(EXECUTORS_KNOB, 0))
        if executors is not None and count >= len(executors.alive()):
            progress.growth = executors.begin_growth(count)

    def _shrink(self, values: Mapping[Knob, Value], progress: _Progress) -> None:
        executors, count = self._executors, values.get(EXECUTORS_KNOB)
        if executors is not None and count is not None and progress.growth is None:
            before = executors.target
            executors.shrink(int(count), self._batch_ends, progress.deadline)
            progress.undos.append(partial(self._scale_back, before))

    def _finish_growth(self, progress: _Progress) -> None:
        """Called before a restart and at the end. The other steps do not need the new executors."""
        growth, progress.growth = progress.growth, None
        if self._executors is not None and growth is not None:
            progress.fresh |= self._executors.finish_growth(growth, progress.deadline)
            progress.undos.append(partial(self._scale_back, growth.old_target))

    def _undos(self, progress: _Progress) -> list[Callable[[], object]]:
        """How to undo the steps, latest first, and at the end an unfinished request for executors."""
        pending = [] if progress.growth is None else [partial(self._scale_back, progress.growth.old_target)]
        return [*reversed(progress.undos), *pending]

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
            new_values = {knob: value for knob, value in values.items() if knob.query == query.name}
            if new_values:
                before = {knob: query.values[knob] for knob in new_values if knob in query.values}
                progress.remarks.append(query.restart(new_values, progress.deadline))
                progress.undos.append(partial(_restart_again, query, before))

    def _spread(self, progress: _Progress) -> None:
        """Give the fresh executors work, which Spark's locality rules would keep away from them."""
        if self._locality is None or not progress.fresh:
            return
        batches_before = {query: query.batches() for query in self._queries if query.active}

        def enough() -> bool:
            return all(query.batches() >= before + _BATCHES_TO_SPREAD for query, before in batches_before.items())

        progress.remarks.append(self._locality.spread(progress.fresh, self._worked, enough, progress.deadline))

    def _batch_ends(self) -> Callable[[], bool]:
        ends = [query.batch_end() for query in self._queries]
        return lambda: all(has_ended() for has_ended in ends)


def _join(*sentences: str) -> str:
    return "; ".join(filter(None, sentences))


def _undo(undo: Callable[[], object]) -> str:
    """Run `undo`. Returns why it failed; empty if it did not fail."""
    try:
        undo()
    except Exception as error:
        return f"an earlier step could not be undone: {first_line(error)}"
    return ""


def _change_again(query: ManagedQuery, values: Mapping[Knob, Value]) -> None:
    query.change_live(values, Deadline.after(_UNDO_S))


def _restart_again(query: ManagedQuery, values: Mapping[Knob, Value]) -> None:
    query.restart(values, Deadline.after(_UNDO_S))
