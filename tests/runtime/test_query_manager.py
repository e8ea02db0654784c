"""Which policy an application gets that names none, and what its manager knows of earlier lives."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat import config
from homeostat.core.cycle import Trace
from homeostat.core.loop_state import State
from homeostat.core.objective import Objective
from homeostat.core.policy import Policy
from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.core.traffic import Traffic
from homeostat.runtime.query_manager import logged_traffic, policy_name, uneven_partitions
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import SimulatedEngine, simulate
from homeostat.store.in_memory import MemoryStore


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
    assert policy_name(config.load(environ={}), objective) == name


def test_a_policy_that_was_named_is_taken() -> None:
    named = config.load(environ={}, flags={"policy": "hpa"})
    assert policy_name(named, Objective(latency_p95_s=10.0)) == "hpa"


@pytest.mark.parametrize("engine", [DataflowSpec(), MicrobatchSpec(executors=4)], ids=["dataflow", "microbatch"])
def test_what_arrived_at_each_source_is_read_back_from_the_log(engine: DataflowSpec | MicrobatchSpec) -> None:
    components = (
        ComponentSpec("clicks", "source", rate_per_s=10_000.0),
        ComponentSpec("orders", "source", rate_per_s=10_000.0),
        ComponentSpec("count", inputs=("clicks", "orders"), parallelism=4, rate_per_s=1_000.0),
    )
    scenario = Scenario("two", "two", engine, 900.0, components, WorkloadSpec(rate_per_s=200.0, noise=Noise(0.05)))
    seen: list[Traffic] = []

    def keep(_trace: Trace, state: State, _engine: SimulatedEngine) -> None:
        seen[:] = [state.traffic]

    store = MemoryStore()
    simulate(scenario, Policy("watch"), store=store, run="x", mode="observe", on_step=keep)
    logged = logged_traffic(store, "x")
    assert set(logged.sources) == {"clicks", "orders"}
    for name, source in logged.sources.items():
        assert source.per_s == pytest.approx(seen[0].sources[name].per_s)
        assert source.per_s == pytest.approx([rate / 2 for rate in logged.per_s], rel=0.01)
    assert logged.per_s == pytest.approx(seen[0].per_s)


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
    assert uneven_partitions(config.load(file, environ={})).ratio == 2.5
