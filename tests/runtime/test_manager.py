"""The loop around the brain: what it writes down, what it forgives its engine, and what it remembers."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from homeostat.core.actions import ALERT
from homeostat.core.configuration import PARALLELISM, Knob, Patch
from homeostat.core.errors import LeaseLostError, StoreError
from homeostat.core.events import Apply, Event, Notify, Observed, Operator
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.policy_definition import Policy
from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.core.view import View
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.manager import Manager
from homeostat.runtime.orders import order
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, Scenario, WorkloadSpec
from homeostat.sim.simulation import build_engine
from homeostat.store.in_memory import MemoryStore
from homeostat.store.sqlite import SqliteStore
from support.postgres import PostgresServer

COUNT = Knob(PARALLELISM, "count")
SCENARIO = Scenario(
    "quiet",
    "",
    DataflowSpec(),
    3600.0,
    (
        ComponentSpec("lines", "source", rate_per_s=1000.0),
        ComponentSpec("count", inputs=("lines",), parallelism=2, rate_per_s=100.0),
    ),
    WorkloadSpec("constant", 100.0),
)


@dataclass(frozen=True)
class Restless:
    """Always wants one instance more, or always has something to say."""

    kind: str = "grow"
    name: str = "restless"

    def detect(self, view: View) -> Iterable[Symptom]:
        return [Symptom("unrest", "count", 0.5)]

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]:
        return [Diagnosis("unrest", "count", 0.9, symptoms=tuple(symptoms))]

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]:
        if self.kind == ALERT:
            return [Proposal(ALERT, tuple(diagnoses), component="count", message="look here")]
        patch = Patch({COUNT: int(view.configuration[COUNT]) + 1})
        return [Proposal(self.kind, tuple(diagnoses), patch, "count", Prediction(0.5, ("count",)))]


def policy(kind: str = "grow") -> Policy:
    part = Restless(kind)
    return Policy("restless", (part,), (part,), (part,))


class Refusing(Dataflow):
    def apply(self, command: Apply) -> None:
        raise ConnectionError("the cluster does not answer")


def test_the_intent_is_written_before_the_action_and_the_receipt_after() -> None:
    store = MemoryStore()
    open_ids: list[list[str]] = []

    class Watching(Dataflow):
        def apply(self, command: Apply) -> None:
            open_ids.append([record.id for record in store.open_intents("run")])
            super().apply(command)

    manager = Manager(Watching(SCENARIO), policy(), store, "run")
    manager.start()
    manager.advance(10.0)
    assert open_ids == [["a-1"]]
    manager.advance(60.0)
    assert store.open_intents("run") == []
    chain = [record.kind for record in store.chain("run", "a-1")]
    assert chain == ["symptom", "diagnosis", "proposal", "action", "receipt"]


def test_an_engine_that_fails_to_act_is_noted_and_the_loop_goes_on() -> None:
    store = MemoryStore()
    manager = Manager(Refusing(SCENARIO), policy(), store, "run")
    manager.start()
    for at_s in (10.0, 20.0, 30.0):
        manager.advance(at_s)
    failure = store.records("run", kinds=("failure",))[0]
    assert failure.text == "actuator failed and was skipped: ConnectionError: the cluster does not answer"
    assert store.records("run", kinds=("receipt",))[0].text == "a-1 did not take effect: the cluster does not answer"
    assert store.open_intents("run") == []
    assert manager.state.observed[COUNT] == 2
    manager.advance(80.0)
    assert [record.id for record in store.records("run", kinds=("action",))] == ["a-1", "a-2"], "tried again later"


def test_a_notifier_that_fails_does_not_stop_the_loop() -> None:
    def broken(alert: Notify) -> None:
        raise OSError("no mail today")

    store = MemoryStore()
    manager = Manager(build_engine(SCENARIO), policy(ALERT), store, "run", on_alert=broken)
    manager.start()
    manager.advance(10.0)
    manager.advance(20.0)
    assert [record.text for record in store.records("run", kinds=("alert",))] == ["look here"]
    assert [record.text for record in store.records("run", kinds=("failure",))] == [
        "the notifier failed and was skipped: OSError: no mail today"
    ]


def test_a_person_is_alerted() -> None:
    alerts: list[Notify] = []
    manager = Manager(build_engine(SCENARIO), policy(ALERT), MemoryStore(), "run", on_alert=alerts.append)
    manager.start()
    manager.advance(10.0)
    assert [(alert.component, alert.message) for alert in alerts] == [("count", "look here")]


def test_a_new_process_is_still_paused_and_goes_on_counting() -> None:
    store = MemoryStore()
    engine = build_engine(SCENARIO)
    first = Manager(engine, policy(), store, "run")
    first.start()
    first.think([Operator("pause", "Ada", "holiday")])
    second = Manager(engine, policy(), store, "run")
    second.start()
    assert second.state.paused == "paused by Ada: holiday"
    second.advance(300.0)
    assert store.records("run", kinds=("action",)) == []
    ids = [record.id for record in store.records("run")]
    assert len(ids) == len(set(ids))
    assert [record.id for record in store.records("run", kinds=("engine",))] == ["g-1", "g-2"]


class FailingStore(MemoryStore):
    """Fails once at the n-th call of one method."""

    def __init__(self) -> None:
        super().__init__()
        self.method, self.calls_left = "", 0

    def fail(self, method: str, at_call: int = 1) -> None:
        self.method, self.calls_left = method, at_call

    def _count(self, method: str) -> None:
        if method == self.method:
            self.calls_left -= 1
            if self.calls_left == 0:
                raise StoreError("another process has kept the log locked for 10 s")

    def append(self, run: str, records: Sequence[Record]) -> None:
        self._count("append")
        super().append(run, records)

    def save_state(self, run: str, key: str, value: JSON) -> None:
        self._count("save_state")
        super().save_state(run, key, value)

    def records(self, run: str, **filters: Any) -> list[Record]:
        self._count("records")
        return super().records(run, **filters)


@pytest.mark.parametrize("method", ["records", "save_state", "append"])
def test_a_receipt_survives_an_error_of_the_log(method: str) -> None:
    store = FailingStore()
    engine = Dataflow(SCENARIO)
    manager = Manager(engine, policy(), store, "run")
    manager.start()
    manager.advance(10.0)
    store.fail(method)
    with pytest.raises(StoreError):
        manager.advance(60.0)
    manager.advance(70.0)
    assert [record.id for record in store.records("run", kinds=("receipt",))] == ["c-1"]
    assert store.open_intents("run") == []
    assert manager.state.observed == engine.describe().configuration
    assert manager.state.observed[COUNT] == 3


@pytest.mark.parametrize("method", ["save_state", "append"])
def test_an_action_that_could_not_be_written_is_not_under_way(method: str) -> None:
    store = FailingStore()
    commands: list[Apply] = []

    class Noting(Dataflow):
        def apply(self, command: Apply) -> None:
            commands.append(command)
            super().apply(command)

    manager = Manager(Noting(SCENARIO), policy(), store, "run")
    manager.start()
    store.fail(method)
    with pytest.raises(StoreError):
        manager.advance(10.0)
    assert (commands, manager.state.active) == ([], ())
    manager.advance(20.0)
    assert [command.id for command in commands] == ["a-1"]
    assert [record.id for record in store.records("run", kinds=("action",))] == ["a-1"]


def test_when_a_command_and_the_log_fail_the_other_commands_are_carried_out_and_the_failure_is_logged_later() -> None:
    part, store, alerts = Restless(), FailingStore(), list[Notify]()
    both = Policy("both", (part,), (part,), (part, Restless(ALERT, "telling")))

    class Failing(Refusing):
        def apply(self, command: Apply) -> None:
            store.fail("append")
            super().apply(command)

    manager = Manager(Failing(SCENARIO), both, store, "run", on_alert=alerts.append)
    manager.start()
    with pytest.raises(StoreError):
        manager.advance(10.0)
    assert [alert.message for alert in alerts] == ["look here"]
    manager.advance(20.0)
    assert store.records("run", kinds=("receipt",))[0].text == "a-1 did not take effect: the cluster does not answer"
    assert store.open_intents("run") == []


@pytest.mark.parametrize(
    ("times_s", "paused", "answer"),
    [((20.0, 30.0), "paused by Ada", "operator"), ((140.0, 150.0), "", "rejection")],
)
def test_an_order_survives_an_error_of_the_log_and_is_obeyed_once_or_refused_if_it_waited_too_long(
    times_s: tuple[float, ...], paused: str, answer: str
) -> None:
    store = FailingStore()
    manager = Manager(Dataflow(SCENARIO), Policy("nothing"), store, "run")
    manager.start()
    store.append("run", [order("pause", by="Ada", now_s=9.0)])
    store.fail("append")
    with pytest.raises(StoreError):
        manager.advance(10.0)
    for at_s in times_s:
        manager.advance(at_s)
    assert manager.state.paused == paused
    (record,) = store.records("run", kinds=("operator", "rejection"))
    assert record.kind == answer
    assert answer == "operator" or "Not done" in record.text


def test_an_event_that_the_loop_cannot_process_is_left_out_and_the_others_are_not() -> None:
    class Garbling(Dataflow):
        def wait(self, until_s: float) -> Sequence[Event]:
            return [Observed(None), *super().wait(until_s)]  # type: ignore[arg-type]

    store = MemoryStore()
    manager = Manager(Garbling(SCENARIO), policy(), store, "run")
    manager.start()
    for at_s in (10.0, 60.0):
        manager.advance(at_s)
    assert [record.id for record in store.records("run", kinds=("receipt",))] == ["c-1"]
    assert "1 events could not be processed: AttributeError" in store.records("run", kinds=("failure",))[0].text


def test_a_receipt_counts_although_the_engine_cannot_describe_itself() -> None:
    class Mute(Refusing):
        mute = False

        def apply(self, command: Apply) -> None:
            self.mute = True
            super().apply(command)

        def describe(self) -> Any:
            if self.mute:
                raise ConnectionError("no answer")
            return super().describe()

    store = MemoryStore()
    manager = Manager(Mute(SCENARIO), policy(), store, "run")
    manager.start()
    manager.advance(10.0)
    assert store.open_intents("run") == []
    assert isinstance(manager.state.observed[COUNT], int)


def damage(path: Path, statement: str) -> None:
    with closing(sqlite3.connect(path)) as connection, connection:
        connection.execute(statement)


@pytest.mark.parametrize(
    "value", ["{", "[1]", """{"numbers": 3, "paused": [], "memory": [5], "trust": 1}""", "null", "DELETED"]
)
def test_a_malformed_state_is_kept_aside_and_the_manager_starts_with_what_the_records_say(
    tmp_path: Path, value: str
) -> None:
    path, alerts = tmp_path / "log.sqlite", list[Notify]()
    engine = build_engine(SCENARIO)
    with closing(SqliteStore(path)) as store:
        first = Manager(engine, policy(), store, "run")
        first.start()
        first.advance(10.0)
        first.advance(60.0)
        first.think([Operator("pause", "Ada", "holiday")])
        ids = {record.id for record in store.records("run")}
        removed = "DELETE FROM state WHERE key = 'loop'"
        damage(path, removed if value == "DELETED" else f"UPDATE state SET value = '{value}' WHERE key = 'loop'")
        second = Manager(engine, policy(), store, "run", on_alert=alerts.append)
        second.start()
        assert second.state.paused == "paused by Ada: holiday"
        assert {"g-2"} <= {record.id for record in store.records("run")} - ids, "no id is given away twice"
        if value in ("null", "DELETED"):
            assert alerts == []
            return
        assert [alert.title for alert in alerts] == ["homeostat-failure"]
        assert "the saved state cannot be read" in alerts[0].message
        assert "it is kept as loop.set-aside" in store.records("run", kinds=("failure",))[0].text
        ((aside,),) = store.rows("SELECT value FROM state WHERE key = 'loop.set-aside'")
        assert aside == value
        third = Manager(engine, policy(), store, "run", on_alert=alerts.append)
        third.start()
        assert len(alerts) == 1, "it is reported once"


@pytest.mark.parametrize(
    "body",
    [
        "{",
        "5",
        "{}",
        """{"desired": {"parallelism.count": "x"}}""",
        """{"desired": {"parallelism.count": 9}, "time_limit_s": 0}""",
        """{"desired": {"parallelism.count": 9}, "time_limit_s": {"$float": "nan"}}""",
    ],
)
def test_an_action_whose_record_is_malformed_is_given_up_and_the_manager_starts(tmp_path: Path, body: str) -> None:
    path, alerts = tmp_path / "log.sqlite", list[Notify]()
    engine = build_engine(SCENARIO)
    with closing(SqliteStore(path)) as store:
        store.append("run", [Record("a-1", "action", 0.0, "scale-up")])
        damage(path, f"UPDATE records SET body = '{body}'")
        manager = Manager(engine, Policy("nothing"), store, "run", on_alert=alerts.append)
        manager.start()
        assert store.open_intents("run") == []
        assert [alert.message for alert in alerts] == [
            "A part of Homeostat failed, the log: the record of action a-1 cannot be read; the action was abandoned"
        ]
        ((kept,),) = store.rows("SELECT body FROM records WHERE id = 'a-1'")
        assert kept == body
    assert engine.describe().configuration[COUNT] == 2


def test_a_malformed_receipt_does_not_keep_the_manager_from_starting(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with closing(SqliteStore(path, on_unreadable=lambda record: None)) as store:
        store.append(
            "run", [Record("a-1", "action", 0.0, ""), Record("c-1", "receipt", 0.0, "", body={"action": "a-1"})]
        )
        damage(path, "UPDATE records SET body = '{' WHERE id = 'c-1'")
        Manager(build_engine(SCENARIO), Policy("nothing"), store, "run").start()


def test_a_manager_on_another_machine_goes_on_where_the_last_one_stopped(
    postgres: PostgresServer, tmp_path: Path
) -> None:
    log, run = postgres.new_address(), "words/counting"
    engine = build_engine(SCENARIO)
    before = ApplicationHold(tmp_path / "here", log, application="words")
    with before, closing(before.open_log(run)) as store:
        first = Manager(engine, policy(), store, run)
        first.start()
        first.advance(300.0)
        actions = store.ids(run, ["action"])
        assert actions
        first.think([Operator("pause", "Ada", "holiday")])
        before.release()
        with (
            ApplicationHold(tmp_path / "there", log, application="words") as hold,
            closing(hold.open_log(run)) as there,
        ):
            second = Manager(engine, policy(), there, run)
            second.start()
            assert second.state.paused == "paused by Ada: holiday"
            assert second.state.numbers["a"] == len(actions)
            second.think([Operator("resume", "Ada")])
            with pytest.raises(LeaseLostError):
                first.think([Operator("resume", "Eve")])
            second.advance(600.0)
            assert there.ids(run, ["action"])[: len(actions)] == actions
            assert len(there.ids(run, ["action"])) > len(actions)
            assert not any("Eve" in record.text for record in there.records(run))
