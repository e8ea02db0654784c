"""Measures how well several problems at once are fixed, against the table of the paper, an oracle and an observer."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

from homeostat.core.actions import ADJUST_SKEW, REPLACE, REVERT, SCALE_DOWN
from homeostat.core.cycle import Trace
from homeostat.core.loop_state import State
from homeostat.core.records import ActionContent, OutcomeContent, with_content
from homeostat.lab.bench.intervals import share
from homeostat.lab.bench.mix_cases import (
    ENGINES,
    HASH_IMBALANCE,
    HOT_KEY,
    INTERVAL_S,
    LOST_EXECUTOR,
    MISSING,
    SLOW_WORKER,
    SOURCE_SKEW,
    draw_case,
    mixes,
)
from homeostat.lab.bench.mix_oracle import observer, oracle, unhealthy_s
from homeostat.policies import registry
from homeostat.sim.simulation import SimulatedEngine, simulate

OURS, PAPER, ORACLE, OBSERVER = "provisioning", "provisioning.paper", "oracle", "observer"
POLICIES = (OURS, PAPER, ORACLE, OBSERVER)
# Settings are tuned on smaller seeds only.
FIRST_SEED = 1000
# The targets: unhealthy seconds as a multiple of the oracle's, and changes until the application stays healthy.
MEDIAN_RATIO, WORST_RATIO, MOST_PLANS, SHARE_OF_RUNS = 1.5, 3.0, 2, 0.9
# The problems for which a kind of action is a remedy. Other actions are judged by the needs of the load.
_REMEDY_FOR = {
    REPLACE: frozenset({SLOW_WORKER, LOST_EXECUTOR}),
    ADJUST_SKEW: frozenset({HOT_KEY, HASH_IMBALANCE, SOURCE_SKEW}),
}


@dataclass(slots=True)
class Run:
    """`plans` are the actions that do not only save resources. `false_remedies` are for a problem that does not
    exist.
    """

    engine: str
    mix: str
    seed: int
    policy: str
    unhealthy_s: float = 0.0
    actions: int = 0
    plans: int = 0
    wrong: int = 0
    false_remedies: int = 0
    reverted: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)


@dataclass(slots=True)
class _Watch:
    kinds: frozenset[str]
    ordered: list[str] = field(default_factory=list)
    false_remedies: int = 0
    verdicts: dict[str, int] = field(default_factory=dict)

    def __call__(self, trace: Trace, state: State, engine: SimulatedEngine) -> None:
        for _, content in with_content(trace.records, ActionContent):
            self.ordered.append(content.action_kind)
            self.false_remedies += any(
                kind in _REMEDY_FOR and not _REMEDY_FOR[kind] & self.kinds for kind in kinds_of(content)
            )
        for _, outcome in with_content(trace.records, OutcomeContent):
            self.verdicts[outcome.verdict] = self.verdicts.get(outcome.verdict, 0) + 1


def kinds_of(content: ActionContent) -> tuple[str, ...]:
    """The kinds of the remedies of a plan, or of the action itself."""
    return tuple(part.action_kind for part in content.parts) or (content.action_kind,)


def one(engine: str, kinds: tuple[str, ...], seed: int, policy: str) -> Run:
    case = draw_case(engine, kinds, seed)
    run = Run(engine, case.name, seed, policy)
    if policy in (ORACLE, OBSERVER):
        best = oracle(case) if policy == ORACLE else observer(case)
        run.unhealthy_s, run.actions, run.plans = best.unhealthy_s, best.actions, best.actions
        return run
    watch = _Watch(frozenset(kinds))
    result = simulate(case.scenario, registry.build(policy), on_step=watch)
    run.unhealthy_s = unhealthy_s(case, result.truth)
    run.actions = len(watch.ordered)
    run.plans = sum(kind not in (SCALE_DOWN, REVERT) for kind in watch.ordered)
    run.reverted = sum(kind == REVERT for kind in watch.ordered)
    run.wrong = sum(applied.needless for applied in result.trajectory)
    run.false_remedies, run.verdicts = watch.false_remedies, watch.verdicts
    return run


def measure(
    *,
    seeds: int = 20,
    first_seed: int = FIRST_SEED,
    engines: Sequence[str] = ENGINES,
    mix: Sequence[tuple[str, ...]] = (),
    policies: Sequence[str] = POLICIES,
    tell: Callable[[str], None] = lambda _: None,
) -> dict[str, Any]:
    """The numbers of `homeostat bench mixes`. `mix`: only these, by default all pairs and triples."""
    cells = [
        (engine, kinds, seed, policy)
        for engine in engines
        for kinds in mixes(engine)
        if not mix or any(set(kinds) == set(one) for one in mix)
        for seed in range(first_seed, first_seed + seeds)
        for policy in policies
    ]
    tell(f"{len(cells)} runs; this takes minutes")
    with ProcessPoolExecutor(os.cpu_count()) as pool:
        runs = list(pool.map(one, *zip(*cells, strict=True))) if cells else []
    return {
        "seeds": seeds,
        "first_seed": first_seed,
        "engines": {
            engine: engine_json([run for run in runs if run.engine == engine], list(MISSING[engine]))
            for engine in engines
        },
    }


def engine_json(runs: Sequence[Run], missing: Sequence[str] = ()) -> dict[str, Any]:
    by_mix: dict[str, dict[str, list[Run]]] = {}
    for run in runs:
        by_mix.setdefault(run.mix, {}).setdefault(run.policy, []).append(run)
    policies = {run.policy: None for run in runs}
    return {
        "not_possible": list(missing),
        "all": {policy: summary([run for run in runs if run.policy == policy], _oracle_s(runs)) for policy in policies},
        "mixes": {
            name: {policy: summary(its, _oracle_s(each.get(ORACLE, ()))) for policy, its in each.items()}
            for name, each in by_mix.items()
        },
        "runs": [asdict(run) for run in runs],
    }


def _oracle_s(runs: Sequence[Run]) -> dict[tuple[str, int], float]:
    return {(run.mix, run.seed): run.unhealthy_s for run in runs if run.policy == ORACLE}


def summary(runs: Sequence[Run], oracle_s: Mapping[tuple[str, int], float]) -> dict[str, Any]:
    """Ratios are to the oracle's unhealthy seconds, which count as at least one batch."""
    ratios = [
        run.unhealthy_s / max(oracle_s[run.mix, run.seed], INTERVAL_S)
        for run in runs
        if (run.mix, run.seed) in oracle_s
    ]
    few = share(sum(run.plans + run.reverted <= MOST_PLANS for run in runs), len(runs))
    verdicts: dict[str, int] = {}
    for run in runs:
        for verdict, count in run.verdicts.items():
            verdicts[verdict] = verdicts.get(verdict, 0) + count
    false_remedies = sum(run.false_remedies for run in runs)
    median_ratio, worst_ratio = (median(ratios), max(ratios)) if ratios else (None, None)
    return {
        "runs": len(runs),
        "unhealthy_s": {"median": median(run.unhealthy_s for run in runs), "worst": max(r.unhealthy_s for r in runs)},
        "over_oracle": {"median": median_ratio, "worst": worst_ratio},
        "actions": sum(run.actions for run in runs) / len(runs),
        "plans": sum(run.plans for run in runs) / len(runs),
        "wrong": sum(run.wrong for run in runs),
        "false_remedies": false_remedies,
        "reverted": sum(run.reverted for run in runs),
        "one_plan_and_one_correction": few,
        "verdicts": verdicts,
        "accepted": bool(ratios)
        and median(ratios) <= MEDIAN_RATIO
        and max(ratios) <= WORST_RATIO
        and (few["share"] or 0.0) >= SHARE_OF_RUNS
        and false_remedies == 0,
    }
