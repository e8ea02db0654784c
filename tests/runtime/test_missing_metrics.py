"""While anything is not measured nothing is taken away; once all is seen again it is."""

from __future__ import annotations

import pytest

from homeostat.core.loop_state import State
from homeostat.policies import registry
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultKind,
    FaultSpec,
    MicrobatchSpec,
    Scenario,
    WorkloadSpec,
)
from homeostat.sim.simulation import RunResult, simulate

GAP_S = 500.0


def idle(engine: str, *faults: FaultSpec, duration_s: float = 2 * GAP_S) -> Scenario:
    dataflow = engine == "dataflow"
    return Scenario(
        name="idle",
        title="",
        engine=DataflowSpec() if dataflow else MicrobatchSpec(executors=6),
        duration_s=duration_s,
        components=(
            ComponentSpec("lines", "source", parallelism=2 if dataflow else 12, rate_per_s=1000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=8 if dataflow else 12, rate_per_s=100.0),
        ),
        workload=WorkloadSpec("constant", 100.0),
        faults=faults,
    )


def run(engine: str, policy: str, *faults: FaultSpec, duration_s: float = 2 * GAP_S) -> RunResult:
    return simulate(idle(engine, *faults, duration_s=duration_s), registry.build(policy))


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
@pytest.mark.parametrize("policy", ["provisioning", "provisioning.paper", "ds2", "hpa"])
@pytest.mark.parametrize(("kind", "share"), [("metric-gap", 0.1), ("metric-gap", 1.0), ("garbage-metrics", 0.3)])
def test_nothing_shrinks_during_a_gap(engine: str, policy: str, kind: FaultKind, share: float) -> None:
    assert run(engine, policy, FaultSpec(kind, share=share), duration_s=GAP_S).trajectory == ()


@pytest.mark.slow
@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
@pytest.mark.parametrize("policy", ["provisioning", "provisioning.paper", "ds2", "hpa"])
def test_what_is_idle_is_given_back_as_soon_as_all_is_seen(engine: str, policy: str) -> None:
    assert run(engine, policy, duration_s=GAP_S).trajectory
    assert run(engine, policy, FaultSpec("metric-gap", 0.0, GAP_S, share=0.1)).trajectory[0].time_s > GAP_S


def test_one_component_that_is_not_measured_keeps_all_of_them() -> None:
    gap = FaultSpec("metric-gap", component="lines", share=1.0)
    assert run("dataflow", "provisioning", gap, duration_s=GAP_S).trajectory == ()


def test_the_loop_says_what_it_does_not_know() -> None:
    states: list[State] = []
    scenario = idle("dataflow", FaultSpec("metric-gap", share=1.0), duration_s=200.0)
    simulate(scenario, registry.build("provisioning"), on_step=lambda trace, state, engine: states.append(state))
    unknown = {key for key in states[-1].symptoms if key[0].startswith("unknown")}
    assert ("unknown:pressure", "count") in unknown
    assert ("unknown:idle", "count") in unknown
    assert ("unknown:growing-backlog", "") in unknown
