"""Which policy an application gets that names none, and what its manager knows of earlier lives."""

from __future__ import annotations

from contextlib import ExitStack, closing
from pathlib import Path

import pytest

from homeostat import settings_file
from homeostat.core.cycle import Trace
from homeostat.core.loop_state import State
from homeostat.core.objective import Objective
from homeostat.core.policy_definition import Policy
from homeostat.core.record_json import JSON
from homeostat.core.records import ActionContent, Record
from homeostat.core.traffic import Traffic
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.manager import Manager
from homeostat.runtime.orders import order
from homeostat.runtime.query_manager import logged_traffic, policy_name, uneven_partitions
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import SimulatedEngine, build_engine, simulate
from homeostat.store.in_memory import MemoryStore
from homeostat.store.registered_applications import ForeignRunError
from homeostat.store.sqlite import SqliteStore

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


@pytest.mark.parametrize(
    ("objective", "name"),
    [
        (Objective(), "provisioning"),
        (Objective(cost_limit=4.0), "provisioning"),
        (Objective(throughput_per_s=5_000.0), "throughput"),
        (Objective(latency_p95_s=10.0), "latency"),
        (Objective(lag_s=30.0), "latency"),
        (Objective(throughput_per_s=5_000.0, latency_p95_s=10.0, cost_limit=4.0), "latency"),
    ],
)
def test_the_policy_holds_all_that_is_asked_for(objective: Objective, name: str) -> None:
    assert policy_name(settings_file.load(environ={}), objective) == name


def test_a_policy_that_was_named_is_taken() -> None:
    named = settings_file.load(environ={}, flags={"policy": "hpa"})
    assert policy_name(named, Objective(latency_p95_s=10.0)) == "hpa"


@pytest.mark.parametrize("engine", [DataflowSpec(), MicrobatchSpec(executors=4)], ids=["dataflow", "microbatch"])
def test_what_arrived_at_each_source_is_read_back_from_the_log(engine: DataflowSpec | MicrobatchSpec) -> None:
    components = (
        ComponentSpec("clicks", "source", rate_per_s=10_000.0),
        ComponentSpec("orders", "source", rate_per_s=10_000.0),
        ComponentSpec("count", inputs=("clicks", "orders"), parallelism=4, rate_per_s=1_000.0),
    )
    scenario = Scenario("two", "two", engine, 900.0, components, WorkloadSpec(rate_per_s=200.0, noise=Noise(0.05)))
    histories: list[Traffic] = []

    def keep(_trace: Trace, state: State, _engine: SimulatedEngine) -> None:
        histories[:] = [state.traffic]

    store = MemoryStore()
    simulate(scenario, Policy("watch"), store=store, run="x", mode="observe", on_step=keep)
    logged = logged_traffic(store, "x")
    assert set(logged.sources) == {"clicks", "orders"}
    for name, source in logged.sources.items():
        assert source.per_s == pytest.approx(histories[0].sources[name].per_s)
        assert source.per_s == pytest.approx([rate / 2 for rate in logged.per_s], rel=0.01)
    assert logged.per_s == pytest.approx(histories[0].per_s)


def test_a_log_that_does_not_tell_sources_apart_or_tells_nonsense_is_read() -> None:
    store = MemoryStore()
    odd: tuple[JSON, ...] = (None, 3, {"a": "x", "b": None}, ["a", "b"])
    for number, apart in enumerate(odd):
        body = {"span_s": 60.0, "arrival_per_s": 10.0, "arrivals_per_s": apart}
        store.append("x", [Record(f"b-{number}", "batch", 60.0 * (number + 1), "a batch", body=body)])
    logged = logged_traffic(store, "x")
    assert logged.per_s == (10.0,) * 3
    assert all(not source.per_s for source in logged.sources.values())


def test_the_sensor_of_keys_uses_the_ratio_that_the_detectors_use(tmp_path: Path) -> None:
    file = tmp_path / "homeostat.toml"
    file.write_text("[sensitivity]\nratio = 2.5\n")
    assert uneven_partitions(settings_file.load(file, environ={})).ratio == 2.5


def test_an_application_does_not_carry_out_the_action_of_another_one_of_the_same_directory_name(tmp_path: Path) -> None:
    """Both directories are called `words` and share one log. The first one is killed with an open action."""
    log = tmp_path / "homeostat.sqlite"
    first_engine, second_engine = build_engine(SCENARIO), build_engine(SCENARIO)
    start = second_engine.describe().configuration
    opened = Record.of(
        "a-1", 0.0, ActionContent("scale-up", desired={"parallelism.count": 8}, time_limit_s=600.0), "scale-up"
    )
    with ApplicationHold(tmp_path / "a" / "words", log) as first, closing(SqliteStore(log)) as store:
        run = f"{first.name}/counting"
        first.enrol(store, run)
        store.append(run, [opened])
    with ApplicationHold(tmp_path / "b" / "words", log) as second, closing(SqliteStore(log)) as store:
        other_run = f"{second.name}/counting"
        second.enrol(store, other_run)
        Manager(second_engine, Policy("nothing"), store, other_run).start()
        assert second_engine.describe().configuration == start
        assert [record.id for record in store.open_intents(run)] == ["a-1"]
        assert [record.id for record in store.open_intents(other_run)] == []
        with pytest.raises(ForeignRunError):
            second.enrol(store, run)
    with ApplicationHold(tmp_path / "a" / "words", log) as first, closing(SqliteStore(log)) as store:
        first.enrol(store, run)
        Manager(first_engine, Policy("nothing"), store, run).start()
        assert store.open_intents(run) == []
    assert first_engine.describe().configuration.as_json()["parallelism.count"] == 8


def test_an_order_reaches_the_application_that_it_is_for_and_no_other(tmp_path: Path) -> None:
    log = tmp_path / "homeostat.sqlite"
    managers: list[Manager] = []
    with ExitStack() as stack:
        for place in ("a", "b"):
            hold = stack.enter_context(ApplicationHold(tmp_path / place / "words", log))
            store = stack.enter_context(closing(SqliteStore(log)))
            hold.enrol(store, f"{hold.name}/counting")
            managers.append(Manager(build_engine(SCENARIO), Policy("nothing"), store, f"{hold.name}/counting"))
            managers[-1].start()
        with closing(SqliteStore(log)) as another:
            another.append("words/counting", [order("pause", by="Ada", now_s=1.0)])
        for manager in managers:
            manager.advance(10.0)
    assert [manager.state.paused for manager in managers] == ["paused by Ada", ""]
