"""How many steps to the right size, beside DS2 on the same noise: E7, E8, and E9 as 36 NEXMark-like runs."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from typing import Any

from homeostat.policies import registry
from homeostat.service.simulation import RunResult, simulate
from homeostat.sim import scenarios
from homeostat.sim.spec import ComponentSpec, DataflowSpec, Noise, Scenario, WorkloadSpec

POLICIES = ("provisioning", "ds2")
STARTS = (8, 12, 16, 20, 24, 28)
SEED = 1
DURATION_S = 3600.0
WITHIN_RUNS, MOST_STEPS, MOST_ABOVE = 34, 2, 1
_LOAD = Noise(0.005, 0.5)
_SERVICE = Noise(0.005, 0.5)
_FAR = {"guards": {"largest_change": 20, "largest_shrink": 20}}


def _source(name: str, rate_per_s: float) -> ComponentSpec:
    return ComponentSpec(name, "source", parallelism=2, minimum=2, rate_per_s=rate_per_s)


def _operator(name: str, inputs: Sequence[str], rate_per_s: float, **more: Any) -> ComponentSpec:
    return ComponentSpec(name, inputs=tuple(inputs), rate_per_s=rate_per_s, **more)


@dataclass(frozen=True, slots=True)
class Query:
    """`rate_per_s` arrives, shared by the sources. The rates of the operators are ours, made so that the first of them
    needs about as many instances as the DS2 paper reports for the query."""

    name: str
    rate_per_s: float
    components: tuple[ComponentSpec, ...]

    def scenario(self, start: int) -> Scenario:
        components = tuple(
            component if component.kind == "source" else replace(component, parallelism=start)
            for component in self.components
        )
        return Scenario(
            name=f"{self.name} from {start}",
            title=f"E9: NEXMark-like {self.name} from {start} instances of every operator",
            engine=DataflowSpec(redeploy_s=40.0, replayable=False),
            duration_s=DURATION_S,
            components=components,
            workload=WorkloadSpec("constant", self.rate_per_s, noise=_LOAD),
            service_noise=_SERVICE,
            settings=_FAR,
        )


_KEYED = {"keyed": True, "keys": 200_000}
QUERIES = (
    Query("Q1", 80e3, (_source("bids", 80e3), _operator("map", ["bids"], 5_250.0))),
    Query(
        "Q2",
        80e3,
        (
            _source("bids", 80e3),
            _operator("filter", ["bids"], 6_000.0, selectivity=0.3),
            _operator("sink", ["filter"], 5_200.0),
        ),
    ),
    Query(
        "Q3",
        60e3,
        (
            _source("auctions", 60e3),
            _source("persons", 60e3),
            _operator("auction filter", ["auctions"], 7_100.0, selectivity=0.5),
            _operator("person filter", ["persons"], 5_700.0, selectivity=0.4),
            _operator("join", ["auction filter", "person filter"], 1_440.0, selectivity=0.2, **_KEYED),
            _operator("sink", ["join"], 1_300.0),
        ),
    ),
    Query(
        "Q5",
        80e3,
        (
            _source("bids", 80e3),
            _operator("window", ["bids"], 5_300.0, selectivity=0.1, **_KEYED),
            _operator("top", ["window"], 2_150.0),
        ),
    ),
    Query(
        "Q8",
        50e3,
        (
            _source("auctions", 50e3),
            _source("persons", 50e3),
            _operator("join", ["auctions", "persons"], 5_300.0, selectivity=0.5, **_KEYED),
            _operator("sink", ["join"], 4_700.0),
        ),
    ),
    Query(
        "Q11",
        80e3,
        (
            _source("bids", 80e3),
            _operator("parse", ["bids"], 9_300.0),
            _operator("sessions", ["parse"], 3_040.0, selectivity=0.25, **_KEYED),
            _operator("sink", ["sessions"], 3_100.0),
        ),
    ),
)


@dataclass(frozen=True, slots=True)
class Run:
    """`above` is how many instances each component has at the end beyond the fewest that take the noise-free load."""

    scenario: str
    policy: str
    steps: int
    converged: bool
    final: Mapping[str, float]
    above: Mapping[str, float]
    unhealthy_s: float

    def as_json(self) -> dict[str, Any]:
        return {
            "scenario": self.scenario,
            "policy": self.policy,
            "steps": self.steps,
            "converged": self.converged,
            "final": dict(self.final),
            "above_the_optimum": dict(self.above),
            "unhealthy_s": self.unhealthy_s,
        }


def measure(*, tell: Callable[[str], None] = lambda _: None) -> dict[str, Any]:
    """The numbers of `homeostat bench convergence`."""
    ours = [(scenarios.load(name), policy) for name in ("E7", "E8") for policy in POLICIES]
    many = [(query.scenario(start), policy) for query in QUERIES for start in STARTS for policy in POLICIES]
    tell(f"{len(ours)} runs of E7 and E8, {len(many)} of E9")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(one, *zip(*ours, *many, strict=True)))
    shown = runs[: len(ours)]
    return {
        "seed": SEED,
        "noise": {"load": _as_json(_LOAD), "service": _as_json(_SERVICE)},
        "E7": [run.as_json() for run in shown if run.scenario == "E7"],
        "E8": [run.as_json() for run in shown if run.scenario == "E8"],
        "E9": {policy: summary([r for r in runs[len(ours) :] if r.policy == policy]) for policy in POLICIES},
        "runs": [run.as_json() for run in runs[len(ours) :]],
    }


def one(scenario: Scenario, policy: str) -> Run:
    built = registry.build(policy, scenario.settings if policy == "provisioning" else {})
    return _run(policy, simulate(scenario, built, seed=SEED))


def _run(policy: str, result: RunResult) -> Run:
    needed = {knob.scope: count for knob, count in result.truth[-1].needed.items()}
    final = {name: float(value) for name, value in result.final_parallelism.items()}
    return Run(
        scenario=result.scenario,
        policy=policy,
        steps=len(result.trajectory),
        converged=result.healthy_since_s is not None,
        final=final,
        above={name: value - needed[name] for name, value in final.items() if name in needed},
        unhealthy_s=float(result.as_json()["slo_violation_s"]),
    )


def summary(runs: Sequence[Run]) -> dict[str, Any]:
    steps = Counter(run.steps for run in runs)
    above = [most for run in runs if (most := max(run.above.values(), default=0.0)) > 0]
    one_step = sum(run.steps <= 1 for run in runs)
    most_above = max((max(run.above.values(), default=0.0) for run in runs), default=0.0)
    return {
        "runs": len(runs),
        "steps": {str(count): steps[count] for count in sorted(steps)},
        "one_step_or_none": one_step,
        "most_steps": max(steps, default=0),
        "converged": sum(run.converged for run in runs),
        "runs_above_the_optimum": len(above),
        "most_above_the_optimum": most_above,
        "below_the_optimum": sum(min(run.above.values(), default=0.0) < 0 for run in runs),
        "unhealthy_s": sum(run.unhealthy_s for run in runs),
        "accepted": one_step >= WITHIN_RUNS and max(steps, default=0) <= MOST_STEPS and most_above <= MOST_ABOVE,
    }


def _as_json(noise: Noise) -> dict[str, float]:
    return {"sigma": noise.sigma, "phi": noise.phi}
