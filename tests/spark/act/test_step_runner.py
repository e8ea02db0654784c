"""The steps of a command: in order, each on its own query, and undone if a later one fails."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from threading import Event
from typing import cast

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Value,
)
from homeostat.core.errors import HomeostatError
from homeostat.core.events import Apply
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.step_runner import StepRunner

BROKEN = 13


@dataclass(eq=False)
class Query:
    """A query that runs nowhere, and cannot restart with some values."""

    name: str
    values: dict[Knob, Value]
    active: bool = True
    during_restart: Callable[[], object] = lambda: None
    calls: list[str] = field(default_factory=list)

    def change_live(self, values: Mapping[Knob, Value], deadline: Deadline) -> str:
        self.calls.append(", ".join(f"{knob.kind} {value}" for knob, value in values.items()))
        self.values |= values
        return ""

    def restart(self, values: Mapping[Knob, Value], deadline: Deadline) -> str:
        self.calls.append("restart")
        self.during_restart()
        if BROKEN in values.values():
            raise HomeostatError("no such partition", where=self.name)
        self.values |= values
        return f"{self.name} restarted"


def query(name: str) -> Query:
    return Query(name, {Knob(ROWS_PER_TRIGGER, name): 100, Knob.of_step(PARALLELISM, name, "split"): 4})


def runner(*queries: Query, stopped: Event | None = None) -> StepRunner:
    knobs = {EXECUTORS_KNOB: KnobSpec(2, 2)}
    for each in queries:
        knobs |= {knob: KnobSpec(live=knob.kind == ROWS_PER_TRIGGER) for knob in each.values}
    managed = [cast(ManagedQuery, each) for each in queries]
    return StepRunner(None, managed, None, lambda: Capabilities(knobs), lambda ids: ids, stopped or Event())


def command(values: Mapping[Knob, Value]) -> Apply:
    return Apply("a-1", 0.0, Configuration(values), (), 60.0)


def test_executors_that_cannot_be_controlled_are_shown_with_their_only_number() -> None:
    words = query("words")
    assert dict(runner(words).configuration().values) == {EXECUTORS_KNOB: 2, **words.values}


def test_each_query_gets_its_own_values_and_live_ones_come_first() -> None:
    left, right = query("left"), query("right")
    desired = {Knob(ROWS_PER_TRIGGER, "left"): 50, Knob.of_step(PARALLELISM, "left", "split"): 8}
    answer = runner(left, right).run(command(desired), Deadline.after(60.0))
    assert (answer.applied, answer.detail) == (True, "left restarted")
    assert left.calls == ["rows_per_trigger 50", "restart"]
    assert right.calls == []


def test_a_step_that_fails_undoes_the_steps_before_it() -> None:
    words = query("words")
    before = dict(words.values)
    desired = {Knob(ROWS_PER_TRIGGER, "words"): 50, Knob.of_step(PARALLELISM, "words", "split"): BROKEN}
    answer = runner(words).run(command(desired), Deadline.after(60.0))
    assert (answer.applied, answer.detail) == (False, "words: no such partition")
    assert words.calls == ["rows_per_trigger 50", "restart", "rows_per_trigger 100"]
    assert words.values == before


def test_while_the_application_stops_nothing_is_undone() -> None:
    words, stopped = query("words"), Event()
    words.during_restart = stopped.set
    desired = {Knob(ROWS_PER_TRIGGER, "words"): 50, Knob.of_step(PARALLELISM, "words", "split"): BROKEN}
    answer = runner(words, stopped=stopped).run(command(desired), Deadline.after(60.0, stopped))
    assert not answer.applied
    assert words.calls == ["rows_per_trigger 50", "restart"]


def test_without_time_left_no_step_begins() -> None:
    words = query("words")
    answer = runner(words).run(command({Knob(ROWS_PER_TRIGGER, "words"): 50}), Deadline.after(0.0))
    assert not answer.applied
    assert answer.detail == "not done within 60 s: other commands or earlier steps used up the time limit"
    assert words.calls == []
