"""Compares policies on recorded loads: the same load, noise and faults for all, over several seeds.

Settings are searched on the tuning traces only, with the same number of draws for each policy, and judged on the test
traces.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, replace
from statistics import fmean
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.lab.bench.duel_figures import FIGURES, dominates, figures, over_seeds
from homeostat.lab.bench.duel_loads import DuelLoad, built_in, peak_per_s, scenario
from homeostat.lab.bench.duel_search import SPACES, Contender, draws, loss
from homeostat.sim.scenario.spec import MicrobatchSpec, Scenario
from homeostat.sim.simulation import simulate

OURS = "provisioning"
LARGEST = "largest"  # the largest cluster that is allowed, from the start to the end
POLICIES = (OURS, "hpa", "flink", "ds2", "conttune", "demeter", "dstream", "spark-dynamic-allocation", LARGEST)
DEFAULT_MOST, DEFAULT_HOURS, DEFAULT_BUDGET, DEFAULT_SEEDS = 24, 18.0, 8, 5
# Tuning runs have seeds of their own.
FIRST_SEED, TUNING_SEED = 1, 1_001
# The targets, against the best of the other policies on each trace.
MOST_VIOLATIONS, LEAST_SAVING, MOST_COST = 0.5, 0.15, 1.15


@dataclass(frozen=True, slots=True)
class Ring:
    """The conditions for all contenders. `application` is a scenario with the engine and components; None: built in."""

    engine: str
    most: int = DEFAULT_MOST
    application: Scenario | None = None
    faulty: bool = False

    def scenario(self, load: DuelLoad, *, whole: bool = False) -> Scenario:
        application = self.application or built_in(self.engine, self.most)
        return scenario(load, application, self.most, self.most if whole else None, faulty=self.faulty)

    @property
    def peak_per_s(self) -> float:
        return peak_per_s(self.application or built_in(self.engine, self.most), self.most)


def bout(load: DuelLoad, ring: Ring, contender: Contender, seed: int) -> dict[str, Any]:
    """One run of one contender."""
    largest = contender.policy == LARGEST
    contest = ring.scenario(load, whole=largest)
    peak = ring.peak_per_s
    policy = (replace(contender, policy="alert") if largest else contender).build(peak)
    result = simulate(contest, policy, seed=seed, traffic=load.history(peak, seed))
    return figures(result, ring.most)


def measure(
    test: Sequence[DuelLoad],
    tune: Sequence[DuelLoad],
    rings: Sequence[Ring],
    *,
    policies: Sequence[str] = POLICIES,
    seeds: int = DEFAULT_SEEDS,
    budget: int = DEFAULT_BUDGET,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The numbers of `homeostat bench duel`."""
    _kept_apart(test, tune)
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        contenders = [Contender(policy) for policy in policies]
        searches = _search(pool, tune, rings[0], policies, budget, tell) if tune else {}
        contenders += [each["best"] for each in searches.values() if each["best"].settings]
        cells = [
            (load, ring, contender, FIRST_SEED + number)
            for ring in rings
            for load in test
            for contender in contenders
            for number in range(seeds)
        ]
        tell(f"{len(cells)} runs on the test traces")
        runs = list(pool.map(bout, *zip(*cells, strict=True)))
    rounds: dict[tuple[str, str], dict[str, list[dict[str, Any]]]] = {}
    for (load, ring, contender, _), run in zip(cells, runs, strict=True):
        rounds.setdefault((ring.engine, load.name), {}).setdefault(contender.label, []).append(run)
    return {
        "seeds": seeds,
        "most": rings[0].most,
        "faults": rings[0].faulty,
        "tuning": {name: _search_json(each) for name, each in searches.items()},
        "rounds": [
            {"engine": engine, "trace": trace, **verdict_json(by_label)} for (engine, trace), by_label in rounds.items()
        ],
    }


def _kept_apart(test: Sequence[DuelLoad], tune: Sequence[DuelLoad]) -> None:
    both = {load.name for load in test} & {load.name for load in tune}
    if both:
        raise ConfigError(
            "is used both for testing and for tuning",
            where=", ".join(sorted(both)),
            fix="give it to one of the two options",
        )


def _search(
    pool: ProcessPoolExecutor,
    tune: Sequence[DuelLoad],
    ring: Ring,
    policies: Sequence[str],
    budget: int,
    tell: Callable[[str], None],
) -> dict[str, dict[str, Any]]:
    cells = [
        (load, ring, contender, TUNING_SEED)
        for policy in policies
        if policy in SPACES
        for contender in draws(policy, budget)
        for load in tune
    ]
    tell(f"{len(cells)} runs on the tuning traces")
    runs = list(pool.map(bout, *zip(*cells, strict=True))) if cells else []
    losses: dict[str, dict[str, tuple[Contender, list[float]]]] = {}
    for (_, _, contender, _), run in zip(cells, runs, strict=True):
        contenders = losses.setdefault(contender.policy, {})
        contenders.setdefault(repr(contender.settings), (contender, []))[1].append(loss(run))
    best_settings = {}
    for policy, contenders in losses.items():
        best, values = min(contenders.values(), key=lambda each: fmean(each[1]))
        best_settings[policy] = {"best": replace(best, tuned=True), "loss": fmean(values), "tried": len(contenders)}
    return best_settings


def _search_json(search: Mapping[str, Any]) -> dict[str, Any]:
    return {"settings": dict(search["best"].settings), "loss": round(search["loss"], 4), "tried": search["tried"]}


def verdict_json(by_label: Mapping[str, Sequence[Mapping[str, Any]]]) -> dict[str, Any]:
    """The figures of all contenders, who dominates whom, and how ours compares with the best of the others."""
    labels = list(by_label)
    dominating = {
        label: [other for other in labels if other != label and dominates(by_label[label], by_label[other])]
        for label in labels
    }
    return {
        "contenders": {label: {**over_seeds(runs), "runs": list(runs)} for label, runs in by_label.items()},
        "dominates": {label: others for label, others in dominating.items() if others},
        **({"ours": _against_the_best(by_label, dominating)} if OURS in labels and len(labels) > 1 else {}),
    }


def _against_the_best(
    by_label: Mapping[str, Sequence[Mapping[str, Any]]], dominating: Mapping[str, Sequence[str]]
) -> dict[str, Any]:
    """The best of the others has the least loss. Ours wins if it has at most half of the violations at no higher cost,
    or a clearly lower cost with no more violations."""
    others = {label: runs for label, runs in by_label.items() if not label.startswith(OURS) and label != LARGEST}
    if not others:
        return {}
    best = min(others, key=lambda label: fmean(loss(run) for run in others[label]))
    mine, theirs = over_seeds(by_label[OURS]), over_seeds(by_label[best])
    violations = (mine["violation_s"]["median"], theirs["violation_s"]["median"])
    cost = (mine["cost_over_oracle"]["median"], theirs["cost_over_oracle"]["median"])
    return {
        "best_other": best,
        "violations_over_best": round(violations[0] / violations[1], 4) if violations[1] else None,
        "cost_over_best": round(cost[0] / cost[1], 4),
        "dominated_by": [label for label in others if OURS in dominating[label]],
        "wins": (violations[0] <= MOST_VIOLATIONS * violations[1] and cost[0] <= cost[1])
        or (violations[0] <= violations[1] and cost[0] <= (1.0 - LEAST_SAVING) * cost[1]),
        "within_cost": cost[0] <= MOST_COST,
    }


def check(application: Scenario, engine: str) -> None:
    """Raise ConfigError if a scenario does not fit the engine that it is to be used on."""
    if isinstance(application.engine, MicrobatchSpec) != (engine == "microbatch"):
        raise ConfigError(
            "does not run on this engine", where=application.name, fix=f"choose an --engine other than {engine}"
        )


def table(result: Mapping[str, Any]) -> list[tuple[str, ...]]:
    """One line per engine, trace and contender."""
    return [
        (one["engine"], os.path.basename(one["trace"]), label, *(f"{each[name]['median']:,.4g}" for name in FIGURES))
        for one in result["rounds"]
        for label, each in one["contenders"].items()
    ]
