"""Commands to a real application: answered by what was observed, every row counted once whatever is done."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.command_queue import Answer
from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Patch,
    Value,
)
from homeostat.core.events import Apply, Event, Failure, Receipt
from homeostat.lab import ledger, source
from homeostat.lab.faults import kill_executor
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act.actuator import Actuator
from homeostat.spark.act.capabilities import judge, look_around
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors, at_once
from homeostat.spark.act.locality import Locality
from homeostat.spark.act.managed_query import ManagedQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LIMIT_S = 240.0
ROOM = 4
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=200.0), keys=50)
STATE, SOURCE = Knob(STATE_PARTITIONS, "words"), Knob(SOURCE_PARTITIONS, "words")
ROWS = Knob(ROWS_PER_TRIGGER, "words")
CANNOT_RUN = 14
LOCALITY_WAIT = "spark.locality.wait.process"


class Application:
    """A stateful count on two executors, and what was heard of the actuator."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        source.register(spark)
        self.spark, self.ledger, self.control = spark, directory / "ledger", directory / "control.json"
        self.checkpoint = directory / "checkpoint"
        self.events: list[Event] = []
        self.executors = Executors(spark)
        self.waits_while_spreading: set[str] = set()
        values = {STATE: 6, SOURCE: 2, ROWS: 600}
        self.query = ManagedQuery(spark, "words", self.build, self.checkpoint, values)
        self.actuator = Actuator(
            self.executors,
            [self.query],
            Locality(spark),
            lambda: judge(look_around(spark, room=ROOM), [self.query]).capabilities,
            self.ran_state_tasks,
            self.events.append,
        )
        self._commands = 0

    def start(self) -> None:
        self.executors.take_over(2)
        self.scale_to_two()
        self.query.start(Deadline.after(LIMIT_S))
        self.actuator.start()

    def stop(self) -> None:
        self.actuator.stop()
        self.query.stop()
        self.scale_to_two()

    def scale_to_two(self) -> None:
        if len(self.executors.alive()) > 2:
            self.executors.shrink(2, at_once, Deadline.after(LIMIT_S))
        self.executors.grow(2, Deadline.after(LIMIT_S))

    def build(self, values: Mapping[Knob, Value]) -> Any:
        reader = self.spark.readStream.format("homeostat").option("profile", PROFILE.to_json())
        reader = reader.option("partitions", str(values[SOURCE])).option("rowsPerTrigger", str(values[ROWS]))
        lines = reader.option("control", str(self.control)).load()
        if values[SOURCE] == CANNOT_RUN:
            lines = lines.selectExpr("concat(word, raise_error('the stage is broken')) AS word")
        counts = lines.groupBy("word").count()
        return counts.writeStream.outputMode("update").foreachBatch(ledger.write_counts(self.ledger))

    def ran_state_tasks(self, ids: frozenset[str]) -> frozenset[str]:
        """Which of these ran a task of the latest stage with as many tasks as the state has partitions."""
        inner: Any = self.spark.sparkContext._jsc.sc()
        self.waits_while_spreading.add(inner.conf().get(LOCALITY_WAIT, "default"))
        store = inner.statusStore()
        stages = store.stageList(None, False, False, getattr(store, "stageList$default$4")(), None)
        for index in range(stages.size()):
            stage = stages.apply(index)
            if stage.numCompleteTasks() == stage.numTasks() == self.query.values[STATE]:
                summary = store.executorSummary(stage.stageId(), stage.attemptId())
                return frozenset(id for id in ids if summary.contains(id))
        return frozenset()

    def command(self, values: Mapping[Knob, Value], retire: frozenset[str], limit_s: float) -> Apply:
        self._commands += 1
        desired = self.actuator.configuration().patched(Patch(values, retire))
        return Apply(f"a-{self._commands}", time.time(), desired, (), limit_s)

    def apply(
        self, values: Mapping[Knob, Value], retire: frozenset[str] = frozenset(), limit_s: float = LIMIT_S
    ) -> Receipt:
        return self.answer(self.command(values, retire, limit_s))

    def answer(self, command: Apply) -> Receipt:
        old_count = len(self.events)
        self.actuator.apply(command)
        assert Deadline.after(2 * LIMIT_S).wait_until(lambda: bool(self._receipts(command.id, old_count)))
        return self._receipts(command.id, old_count)[0]

    def _receipts(self, id: str, old_count: int) -> list[Receipt]:
        return [event for event in self.events[old_count:] if isinstance(event, Receipt) and event.command_id == id]

    def differences(self) -> list[str]:
        rows = ledger.recorded_rows(self.ledger, self.checkpoint)
        assert rows > 0
        return ledger.check(self.ledger, PROFILE, rows)

    def batch_more(self) -> None:
        before = self.query.batches()
        assert Deadline.after(LIMIT_S).wait_until(lambda: self.query.batches() > before)


@pytest.fixture(scope="module")
def application(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Application]:
    running = Application(spark, tmp_path_factory.mktemp("application"))
    running.start()
    yield running
    running.stop()


def test_state_spreads_onto_the_executors_that_are_added(application: Application) -> None:
    before = application.executors.ids()
    application.waits_while_spreading.clear()
    receipt = application.apply({EXECUTORS_KNOB: 3})
    assert receipt.applied, receipt.detail
    assert receipt.detail == ""
    assert receipt.configuration[EXECUTORS_KNOB] == 3
    fresh = application.executors.ids() - before
    assert application.ran_state_tasks(fresh) == fresh
    assert "0s" in application.waits_while_spreading
    application.waits_while_spreading.clear()
    application.batch_more()
    application.batch_more()
    assert application.ran_state_tasks(fresh) == fresh, "the state went back when the wait was restored"
    assert application.waits_while_spreading == {"default"}
    assert not application.differences()


def test_the_same_again_is_acknowledged_and_changes_nothing(application: Application) -> None:
    command = application.command({}, frozenset(), LIMIT_S)
    first, again = application.answer(command), application.answer(command)
    assert first.applied
    assert again.applied
    assert first.configuration == again.configuration == application.actuator.configuration()


def test_what_is_out_of_bounds_is_refused(application: Application) -> None:
    before = application.actuator.configuration()
    for values in ({EXECUTORS_KNOB: 0}, {EXECUTORS_KNOB: ROOM + 1}, {STATE: 0}, {ROWS: 0.5 + 1}):
        receipt = application.apply(values)
        assert not receipt.applied
        assert receipt.detail
        assert receipt.configuration == before == application.actuator.configuration()


def test_fewer_executors_and_more_partitions_in_one_command(application: Application) -> None:
    receipt = application.apply({EXECUTORS_KNOB: 2, STATE: 5, SOURCE: 3})
    assert receipt.applied, receipt.detail
    assert receipt.configuration == Configuration({EXECUTORS_KNOB: 2, STATE: 5, SOURCE: 3, ROWS: 600})
    application.batch_more()
    assert not application.differences()


def test_a_slow_executor_is_replaced(application: Application) -> None:
    victim = application.executors.alive()[0].id
    receipt = application.apply({}, retire=frozenset({victim}))
    assert receipt.applied, receipt.detail
    assert receipt.configuration.retired == {victim}
    assert receipt.configuration[EXECUTORS_KNOB] == 2
    assert victim not in application.executors.ids()
    application.batch_more()
    assert not application.differences()


def test_a_command_that_fails_takes_back_its_earlier_steps(application: Application) -> None:
    before = application.actuator.configuration()
    receipt = application.apply({ROWS: 500, SOURCE: CANNOT_RUN})
    assert not receipt.applied
    assert receipt.detail.endswith("; the query runs with its old values again")
    assert receipt.configuration == before
    application.batch_more()
    assert application.query.active
    assert not application.differences()


def test_what_takes_too_long_is_called_off(application: Application, wait_until: WaitUntil) -> None:
    before = application.actuator.configuration()
    receipt = application.apply({EXECUTORS_KNOB: 3}, limit_s=0.5)
    assert not receipt.applied
    assert "not done within 0.5 s: 2 of 3 executors are up" in receipt.detail
    assert receipt.configuration == before
    assert application.executors.target == 2
    wait_until(lambda: len(application.executors.alive()) == 2, "a late executor is gone")


def test_an_executor_that_is_killed_during_a_batch_comes_back_and_nothing_is_lost(
    application: Application, wait_until: WaitUntil
) -> None:
    before = application.executors.ids()
    victim = min(before)
    tracker = application.spark.sparkContext.statusTracker()
    wait_until(lambda: bool(tracker.getActiveStageIds()), "a batch is under way")
    kill_executor(victim, application.spark.sparkContext.applicationId)
    wait_until(lambda: victim not in application.executors.ids(), "Spark has noticed")
    wait_until(lambda: len(application.executors.ids()) == 2, "the cluster has started another one")
    application.batch_more()
    application.batch_more()
    assert not application.differences()
    assert not [event for event in application.events if isinstance(event, Failure)]


def test_a_receipt_that_cannot_be_sent_is_sent_later(wait_until: WaitUntil) -> None:
    events: list[Event] = []
    failures_left = [2]

    def capabilities() -> Capabilities:
        if failures_left[0]:
            failures_left[0] -= 1
            raise ConnectionError("the driver does not answer")
        return Capabilities({EXECUTORS_KNOB: KnobSpec(1, 1)})

    actuator = Actuator(None, [], None, capabilities, lambda ids: ids, events.append)
    actuator._acknowledge("a-1", Answer(True, "done"))
    assert events == [Failure("receipt of a-1", "the driver does not answer", events[0].at_s)]  # type: ignore[union-attr]
    actuator.start()
    try:
        wait_until(lambda: len(events) > 1, "the receipt is sent")
    finally:
        actuator.stop()
    (receipt,) = events[1:]
    assert isinstance(receipt, Receipt)
    assert (receipt.command_id, receipt.applied) == ("a-1", True)
