"""A wrong model does no harm: the loop ends healthy, and within its guards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import pytest

from homeostat.api_objectives import ModelError
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.objective import Objective
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies import registry
from homeostat.resolvers.scale import ScaleUpResolver
from homeostat.resolvers.sizing import Need, Sizing
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    WorkloadSpec,
)
from homeostat.sim.simulation import RunResult, simulate
from homeostat.store.in_memory import MemoryStore

pytestmark = pytest.mark.slow

SETTINGS = {"guards": {"cooldown": "30 s"}}


def scenario(
    engine: DataflowSpec | MicrobatchSpec, faults: tuple[FaultSpec, ...] = (), objective: Objective | None = None
) -> Scenario:
    """A word count that is well sized; a dataflow's load doubles after a quarter of an hour."""
    dataflow = isinstance(engine, DataflowSpec)
    steps = ((0.0, 300.0), (900.0, 600.0)) if dataflow and not faults else ()
    return Scenario(
        name="wrong",
        title="wrong",
        engine=engine,
        duration_s=2_700.0 if dataflow else 3_600.0,
        components=(
            ComponentSpec("lines", "source", parallelism=1 if dataflow else 24, rate_per_s=10_000.0),
            ComponentSpec("count", inputs=("lines",), parallelism=4 if dataflow else 24, rate_per_s=100.0),
        ),
        workload=WorkloadSpec("steps" if steps else "constant", 300.0, steps=steps, noise=Noise(0.03, 0.5)),
        service_noise=Noise(0.03, 0.5),
        faults=faults,
        objective=objective or Objective(),
    )


def healthy_at_the_end(result: RunResult) -> bool:
    return result.healthy_since_s is not None


@dataclass(frozen=True, slots=True)
class WrongSizing(Sizing):
    """Takes instances for three times as fast as they are."""

    def needs(
        self, view: View, skewed: frozenset[str] = frozenset(), *, floor_per_s: float = 0.0, last: int = 6
    ) -> list[Need]:
        right = Sizing.needs(self, view, skewed, floor_per_s=floor_per_s, last=last)
        return [replace(need, exact=max(need.present + 0.5, need.exact / 3)) for need in right]


@dataclass(frozen=True, slots=True)
class Boastful(ScaleUpResolver):
    """Promises three times the gain that there will be."""

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for proposal in ScaleUpResolver.resolve(self, view, diagnoses):
            prediction = proposal.prediction
            if prediction is not None and "by the pressure" not in prediction.text:
                prediction = replace(prediction, gain=prediction.gain + 1.1)
            yield replace(proposal, prediction=prediction)


def with_wrong_model(policy: Policy) -> Policy:
    wrong = tuple(
        Boastful(WrongSizing(), most_error=0.5) if isinstance(part, ScaleUpResolver) else part
        for part in policy.resolvers
    )
    return replace(policy, resolvers=wrong)


def test_a_model_that_is_wrong_by_a_factor_of_three_is_given_up_and_said_so() -> None:
    store = MemoryStore()
    policy = with_wrong_model(registry.build("provisioning", SETTINGS))
    result = simulate(scenario(DataflowSpec()), policy, store=store, run="x")
    assert healthy_at_the_end(result)
    texts = [str(record.body.get("prediction")) for record in store.records("x", kinds=("action",))]
    assert any("predictions for it were off by" in text for text in texts)
    errors = [record.body.get("model_error") for record in store.records("x", kinds=("outcome",))]
    assert any(isinstance(error, float) and error > 0.5 for error in errors)


@pytest.mark.parametrize(("allowed", "given_up"), [("20 %", True), ("900 %", False)])
def test_how_wrong_a_model_may_be_says_the_objective(allowed: str, given_up: bool) -> None:
    """The same model, whose promises are never kept: an objective that allows that little steps by the pressure."""
    store = MemoryStore()
    policy = with_wrong_model(registry.build("provisioning", SETTINGS))
    simulate(scenario(DataflowSpec(), objective=ModelError(at_most=allowed)), policy, store=store, run="x")
    errors = [record.body.get("model_error") for record in store.records("x", kinds=("outcome",))]
    assert any(isinstance(error, float) and error > 0.5 for error in errors)
    texts = [str(record.body.get("prediction")) for record in store.records("x", kinds=("action",))]
    assert (
        any(f"the objective allows {allowed.replace(' ', '')}, so the size is chosen by" in text for text in texts)
        == given_up
    )
    assert given_up or not any("predictions for it were off" in text for text in texts)


CASES = {
    "dataflow": (DataflowSpec(), "provisioning", Objective()),
    "microbatch": (MicrobatchSpec(executors=5), "provisioning", Objective()),
    "latency": (MicrobatchSpec(executors=5), "latency", Objective(latency_p95_s=30.0)),
}
# The latency policy on the same engine takes the longest.
ALL_CASES = [
    pytest.param(*case, id=name, marks=[pytest.mark.soak] * (name == "latency")) for name, case in CASES.items()
]


@pytest.mark.parametrize(("engine", "policy", "objective"), ALL_CASES)
def test_capacity_that_suddenly_halves_is_made_up_for(
    engine: DataflowSpec | MicrobatchSpec, policy: str, objective: Objective
) -> None:
    faults = tuple(FaultSpec("slow-host", at_s=1_000.0, host=f"host-{n}", factor=2.0) for n in range(4))
    result = simulate(scenario(engine, faults, objective), registry.build(policy, SETTINGS))
    assert healthy_at_the_end(result)
    assert len(result.trajectory) <= 6


@pytest.mark.parametrize(("engine", "policy", "objective"), ALL_CASES)
def test_a_poisoned_history_leads_nowhere_bad(
    engine: DataflowSpec | MicrobatchSpec, policy: str, objective: Objective
) -> None:
    faults = (FaultSpec("garbage-metrics", at_s=300.0, until_s=1_500.0, share=0.3),)
    result = simulate(scenario(engine, faults, objective), registry.build(policy, SETTINGS))
    assert healthy_at_the_end(result)
    assert max(result.final_parallelism.values()) <= 24
