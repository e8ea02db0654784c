"""A latency objective under a load that varies threefold, on the micro-batch simulator."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from functools import cache

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.core.cycle import Trace
from homeostat.core.digest import Digest, digest
from homeostat.core.events import Observed
from homeostat.core.loop_state import State
from homeostat.core.objective import Objective
from homeostat.core.records import Record
from homeostat.detectors.slo_violation import latency_p95_s
from homeostat.policies import registry
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.simulation import RunResult, SimulatedEngine, simulate
from homeostat.store.in_memory import MemoryStore

pytestmark = pytest.mark.slow

WANTED_S = 12.0
EXECUTORS = 3
RISES_S, FALLS_S, DURATION_S = 300.0, 800.0, 1_200.0
SETTINGS = {"guards": {"cooldown_shrink": "2 min", "confirm": "2 min"}}


def scenario(executors: int, objective: Objective) -> Scenario:
    """From 1,000 to 3,000 rows/s and back; a millisecond a row, a trigger of 5 s."""
    return Scenario(
        name="threefold",
        title="threefold",
        engine=MicrobatchSpec(trigger_s=5.0, executors=executors, max_executors=20, locality_wait_s=0.0),
        duration_s=DURATION_S,
        components=(
            ComponentSpec("lines", "source", parallelism=24, rate_per_s=10_000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=24, rate_per_s=1_000.0, keyed=True, stateful=True),
        ),
        workload=WorkloadSpec(
            "steps", 1_000.0, steps=((0.0, 1_000.0), (RISES_S, 3_000.0), (FALLS_S, 1_000.0)), noise=Noise(0.03, 0.5)
        ),
        service_noise=Noise(0.03, 0.3),
        objective=objective,
        policy="latency",
    )


@cache
def run(
    cost_limit: float | None = None, gives_way: str = "latency", duration_s: float = DURATION_S
) -> tuple[RunResult, float, tuple[Record, ...]]:
    """The run, the share of the time in which the p95 latency was held, and the actions and alerts."""
    made = scenario(EXECUTORS, Objective(latency_p95_s=WANTED_S, cost_limit=cost_limit))
    made = replace(made, duration_s=duration_s)
    digests: dict[float, Digest] = {}

    def look(_trace: Trace, state: State, _engine: SimulatedEngine) -> None:
        digests.update((digest.at_s, digest) for digest in state.history[-5:])

    store = MemoryStore()
    built = registry.build("latency", {**SETTINGS, "planning": {"gives_way": gives_way}})
    result = simulate(made, built, store=store, run="x", on_step=look)
    return result, held(digests.values()), tuple(store.records("x", kinds=("action", "alert")))


def statements(records: Iterable[Record], kind: str) -> list[str]:
    """What the alerts, or the predictions of the actions, say."""
    chosen = [record for record in records if record.kind == kind]
    return [record.text if kind == "alert" else str(record.body.get("prediction", "")) for record in chosen]


def held(digests: Iterable[Digest]) -> float:
    spans = [(digest.span_s, latency_p95_s(digest) <= WANTED_S) for digest in digests]
    return sum(span_s for span_s, in_time in spans if in_time) / sum(span_s for span_s, _ in spans)


def smallest_static() -> int:
    """The fewest executors that hold it nine tenths of the time, nothing being regulated."""
    return next(n for n in range(3, 20) if held(unregulated(n)) >= 0.9)


def unregulated(executors: int) -> list[Digest]:
    made = scenario(executors, Objective(latency_p95_s=WANTED_S))
    events = Microbatch(made).wait(made.duration_s)
    return [digest(event.observation, 0) for event in events if isinstance(event, Observed)]


def test_the_latency_is_held_at_lower_cost_than_the_smallest_static_configuration_that_holds_it() -> None:
    result, in_time, records = run()
    actions = [record for record in records if record.kind == "action"]
    assert in_time >= 0.9
    assert result.as_json()["instance_seconds"] < smallest_static() * result.truth[-1].at_s
    assert {record.body["kind"] for record in actions} >= {"scale-down"}
    assert len(actions) <= 6


def test_a_plan_says_what_it_expects() -> None:
    _, _, records = run()
    assert any("p95 latency" in text for text in statements(records, "action"))


@pytest.mark.parametrize(
    ("gives_way", "most", "kind", "sentence"),
    [
        ("latency", 3, "alert", "the cost limit of 3 does not allow the latency"),
        ("cost", 20, "action", "the plan exceeds the cost limit of 3"),
    ],
)
def test_what_gives_way_is_configured_and_explained(gives_way: str, most: int, kind: str, sentence: str) -> None:
    result, _, records = run(cost_limit=3.0, gives_way=gives_way, duration_s=RISES_S + 120.0)
    assert any(sentence in text for text in statements(records, kind))
    largest = max(sample.values[EXECUTORS_KNOB] for sample in result.truth)
    assert largest <= most
    assert (largest > EXECUTORS) == (gives_way == "cost")


def test_a_lag_objective_is_held_too() -> None:
    made = replace(scenario(EXECUTORS, Objective(lag_s=6.0)), duration_s=FALLS_S)
    result = simulate(made, registry.build("latency", SETTINGS))
    late = [sample for sample in result.truth if sample.at_s > RISES_S + 400.0]
    assert all(sample.pending_rows <= 6.0 * 1.2 * sample.arrival_per_s for sample in late)
