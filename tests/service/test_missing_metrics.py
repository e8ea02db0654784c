"""While anything is not measured nothing is taken away; once all is seen again it is."""

from __future__ import annotations

import pytest

from homeostat.core.state import State
from homeostat.policies import registry
from homeostat.service.simulation import RunResult, simulate
from homeostat.sim.spec import ComponentSpec, DataflowSpec, FaultKind, FaultSpec, MicrobatchSpec, Scenario, WorkloadSpec

GAP_S = 1200.0


def idle(engine: str, *faults: FaultSpec) -> Scenario:
    dataflow = engine == "dataflow"
    return Scenario(
        name="idle",
        title="",
        engine=DataflowSpec() if dataflow else MicrobatchSpec(executors=6),
        duration_s=2400.0,
        components=(
            ComponentSpec("lines", "source", parallelism=2 if dataflow else 12, rate_per_s=1000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=8 if dataflow else 12, rate_per_s=100.0),
        ),
        workload=WorkloadSpec("constant", 100.0),
        faults=faults,
    )


def run(engine: str, policy: str, *faults: FaultSpec) -> RunResult:
    return simulate(idle(engine, *faults), registry.build(policy))


@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
@pytest.mark.parametrize("policy", ["provisioning", "provisioning.paper", "ds2", "hpa"])
@pytest.mark.parametrize(("kind", "share"), [("metric-gap", 0.1), ("metric-gap", 1.0), ("garbage-metrics", 0.3)])
def test_nothing_shrinks_during_a_gap(engine: str, policy: str, kind: FaultKind, share: float) -> None:
    damaged = run(engine, policy, FaultSpec(kind, 0.0, GAP_S, share=share))
    assert [taken for taken in damaged.trajectory if taken.time_s < GAP_S] == []


@pytest.mark.parametrize("engine", ["dataflow", "microbatch"])
@pytest.mark.parametrize("policy", ["provisioning", "provisioning.paper", "ds2", "hpa"])
def test_what_is_idle_is_given_back_as_soon_as_all_is_seen(engine: str, policy: str) -> None:
    whole = run(engine, policy)
    assert whole.trajectory
    assert whole.trajectory[0].time_s < GAP_S
    late = run(engine, policy, FaultSpec("metric-gap", 0.0, GAP_S, share=0.1))
    assert late.trajectory


def test_one_component_that_is_not_measured_keeps_all_of_them() -> None:
    gap = FaultSpec("metric-gap", 0.0, component="lines", share=1.0)
    assert run("dataflow", "provisioning", gap).trajectory == ()


def test_the_loop_says_what_it_does_not_know() -> None:
    states: list[State] = []
    scenario = idle("dataflow", FaultSpec("metric-gap", 0.0, share=1.0))
    simulate(scenario, registry.build("provisioning"), on_step=lambda trace, state, engine: states.append(state))
    unknown = {key for key in states[-1].symptoms if key[0].startswith("unknown")}
    assert ("unknown:pressure", "count") in unknown
    assert ("unknown:idle", "count") in unknown
    assert ("unknown:growing-backlog", "") in unknown
