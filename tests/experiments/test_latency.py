"""A latency objective under a load that varies threefold, on the micro-batch simulator."""

from __future__ import annotations

from dataclasses import replace
from functools import cache

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.core.cycle import Trace
from homeostat.core.findings import Record
from homeostat.core.objective import Objective
from homeostat.core.state import State
from homeostat.detectors.slo import latency_p95_s
from homeostat.policies import registry
from homeostat.service.simulation import RunResult, SimulatedEngine, simulate
from homeostat.sim.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.store.memory import MemoryStore

WANTED_S = 12.0
SETTINGS = {"guards": {"cooldown_shrink": "2 min", "confirm": "2 min"}}


def scenario(executors: int, objective: Objective) -> Scenario:
    """From 1,000 to 3,000 rows/s and back; a millisecond a row, a trigger of 5 s."""
    return Scenario(
        name="threefold",
        title="threefold",
        engine=MicrobatchSpec(trigger_s=5.0, executors=executors, max_executors=20, locality_wait_s=0.0),
        duration_s=3600.0,
        components=(
            ComponentSpec("lines", "source", parallelism=24, rate_per_s=10_000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=24, rate_per_s=1_000.0, keyed=True, stateful=True),
        ),
        workload=WorkloadSpec(
            "steps", 1_000.0, steps=((0.0, 1_000.0), (900.0, 3_000.0), (2_400.0, 1_000.0)), noise=Noise(0.03, 0.5)
        ),
        service_noise=Noise(0.03, 0.3),
        objective=objective,
        policy="latency",
    )


@cache
def run(
    policy: str, executors: int, cost_limit: float | None = None, gives_way: str = "latency"
) -> tuple[RunResult, float, tuple[Record, ...]]:
    """The run, the share of the time in which the p95 latency was held, and the actions."""
    made = scenario(executors, Objective(latency_p95_s=WANTED_S, cost_limit=cost_limit))
    seen: dict[float, tuple[float, bool]] = {}

    def look(_trace: Trace, state: State, _engine: SimulatedEngine) -> None:
        for digest in state.history[-5:]:
            seen[digest.at_s] = digest.span_s, latency_p95_s(digest) <= WANTED_S

    store = MemoryStore()
    built = registry.build(policy, {**SETTINGS, "planning": {"gives_way": gives_way}} if policy == "latency" else {})
    result = simulate(
        made, built, store=store, run="x", on_step=look, mode="observe" if policy == "alert" else "regulate"
    )
    held = sum(span_s for span_s, in_time in seen.values() if in_time) / sum(span_s for span_s, _ in seen.values())
    return result, held, tuple(store.records("x", kinds=("action",)))


def cost(result: RunResult) -> float:
    return float(result.as_json()["instance_seconds"])


def smallest_static() -> int:
    """The fewest executors that hold it nine tenths of the time, nothing being regulated."""
    return next(n for n in range(3, 20) if run("alert", n)[1] >= 0.9)


def test_the_latency_is_held_at_lower_cost_than_the_smallest_static_configuration_that_holds_it() -> None:
    result, held, actions = run("latency", 3)
    static = run("alert", smallest_static())[0]
    assert held >= 0.9
    assert cost(result) < cost(static)
    assert {record.body["kind"] for record in actions} >= {"scale-down"}
    assert len(actions) <= 6


def test_a_plan_says_what_it_expects() -> None:
    _, _, actions = run("latency", 3)
    texts = [str(record.body["prediction"]["text"]) for record in actions if "prediction" in record.body]  # type: ignore[index,call-overload]
    assert any("p95 latency" in text for text in texts)


@pytest.mark.parametrize(("gives_way", "most"), [("latency", 3), ("cost", 20)])
def test_what_gives_way_is_configured(gives_way: str, most: int) -> None:
    result, _, _ = run("latency", 3, cost_limit=3.0, gives_way=gives_way)
    largest = max(sample.values[EXECUTORS_KNOB] for sample in result.truth)
    assert largest <= most
    assert (largest > 3) == (gives_way == "cost")


def test_a_lag_objective_is_held_too() -> None:
    made = replace(scenario(3, Objective(lag_s=6.0)), duration_s=2_000.0)
    result = simulate(made, registry.build("latency", SETTINGS))
    late = [sample for sample in result.truth if sample.at_s > 1_500.0]
    assert all(sample.pending_rows <= 6.0 * 1.2 * sample.arrival_per_s for sample in late)
