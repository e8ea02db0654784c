"""Orders that another process leaves in the log: obeyed once, answered always."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.policy_definition import Policy
from homeostat.core.records import Record
from homeostat.runtime.manager import Manager
from homeostat.runtime.orders import VALID_S, Orders, order
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, Scenario, WorkloadSpec
from homeostat.sim.simulation import build_engine
from homeostat.store.sqlite import SqliteStore

RUN = "app/words"
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


@pytest.fixture
def log(tmp_path: Path) -> Path:
    return tmp_path / "log.sqlite"


def managed(log: Path) -> Manager:
    manager = Manager(build_engine(SCENARIO), Policy("nothing"), SqliteStore(log), RUN)
    manager.start()
    manager.advance(60.0)
    return manager


def give(log: Path, now_s: float, command: str, **words: object) -> Record:
    """As another process does."""
    record = order(command, by="alice", now_s=now_s, **words)  # type: ignore[arg-type]
    store = SqliteStore(log)
    store.append(RUN, [record])
    store.close()
    return record


def test_pause_and_resume_reach_the_loop_with_who_and_why(log: Path) -> None:
    manager = managed(log)
    request = give(log, 60.0, "pause", why="deploying")
    manager.advance(70.0)
    assert manager.state.paused == "paused by alice: deploying"
    (answer,) = manager.store.records(RUN, kinds=("operator",))
    assert request.id in answer.because
    assert (answer.body["by"], answer.body["why"]) == ("alice", "deploying")
    give(log, 70.0, "resume")
    manager.advance(80.0)
    assert manager.state.paused == ""


def test_knobs_are_set_by_hand_and_the_effect_is_seen(log: Path) -> None:
    manager = managed(log)
    request = give(log, 60.0, "apply", values={"parallelism.count": 5})
    manager.advance(70.0)
    for now_s in range(80, 400, 10):
        manager.advance(float(now_s))
    kinds = [record.kind for record in manager.store.chain(RUN, request.id)]
    assert kinds == ["order", "operator", "action", "receipt"]
    assert manager.engine.describe().configuration.as_json()["parallelism.count"] == 5


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({"parallelism.count": 2}, "nothing to change: the values are already set"),
        ({"parallelism.cuont": 5}, "parallelism.cuont cannot be set here; available knobs: parallelism.count"),
        ({"parallelism.count": 0}, "outside its bounds"),
        ({"parallelism.count": 2.5}, "not a whole number"),
    ],
)
def test_what_cannot_be_applied_is_answered(log: Path, values: dict[str, float], reason: str) -> None:
    manager = managed(log)
    request = give(log, 60.0, "apply", values=values)
    manager.advance(70.0)
    answer = manager.store.chain(RUN, request.id)[-1]
    assert answer.kind == "rejection"
    assert reason in answer.text
    assert manager.engine.describe().configuration.as_json()["parallelism.count"] == 2


def test_paused_means_that_nothing_is_applied_by_hand_either(log: Path) -> None:
    manager = managed(log)
    give(log, 60.0, "pause")
    request = give(log, 61.0, "apply", values={"parallelism.count": 5})
    manager.advance(70.0)
    assert manager.store.chain(RUN, request.id)[-1].text == "Not done: kill switch: paused by alice"


def test_an_order_is_obeyed_once_also_over_a_restart(log: Path) -> None:
    manager = managed(log)
    give(log, 60.0, "pause")
    manager.advance(70.0)
    manager.advance(80.0)
    again = managed(log)
    assert again.state.paused == "paused by alice"
    assert len(again.store.records(RUN, kinds=("operator",))) == 1


def test_an_order_that_waited_too_long_is_answered_and_not_obeyed(log: Path) -> None:
    managed(log).store.close()
    request = give(log, 0.0, "pause")
    late = Manager(build_engine(SCENARIO), Policy("nothing"), SqliteStore(log), RUN)
    late.start()
    late.advance(VALID_S + 60.0)
    assert late.state.paused == ""
    (_, answer) = late.store.chain(RUN, request.id)
    assert answer.text == "Not done: no manager received the command within 120 s"


def test_nonsense_in_the_log_is_no_order(log: Path) -> None:
    manager = managed(log)
    manager.store.append(RUN, [Record("order-x", "order", 60.0, "", body={"command": "drop", "values": [1]})])
    manager.advance(70.0)
    assert manager.store.records(RUN, kinds=("operator",)) == []


@pytest.mark.parametrize(
    ("command", "words", "what"),
    [
        ("puase", {}, "unknown command 'puase'"),
        ("approve", {}, "the advice to approve"),
        ("apply", {}, "no knob to set"),
        ("resolve", {}, "the resolver to run"),
        ("pause", {"why": "x" * 501}, "501 characters"),
    ],
)
def test_an_order_that_makes_no_sense_is_refused_before_it_is_given(
    command: str, words: dict[str, str], what: str
) -> None:
    with pytest.raises(ConfigError, match=what):
        order(command, by="alice", now_s=0.0, **words)  # type: ignore[arg-type]


def test_of_a_long_life_of_orders_only_the_newest_are_remembered(log: Path) -> None:
    store = SqliteStore(log)
    orders = Orders(store, RUN)
    orders.start()
    obeyed = []
    for number in range(300):
        store.append(RUN, [order("pause", by="alice", now_s=float(number))])
        obeyed += orders.new(float(number))
        orders.confirm()
    assert len(obeyed) == 300
    assert len(orders._read_ids) <= 51
    store.close()
