"""Measures how often, how soon and with what probability the correct cause is found, on random simulated runs with
known faults.
"""

from __future__ import annotations

import math
import time
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import combinations
from typing import Any

import numpy as np

from homeostat.core.causes import (
    INCONCLUSIVE,
    NEEDLESS_SPREAD,
    OVER_PROVISIONED,
    RISE_AHEAD,
    SLO_UNMET,
    UNDER_PROVISIONED,
)
from homeostat.core.evidence_limits import WORTH_NAMING
from homeostat.core.policy_definition import Policy
from homeostat.core.time_causes import FAILING_TASKS
from homeostat.lab.bench.case_runs import Cycle, PlayedRun, Scaling, is_right, play
from homeostat.lab.bench.diagnosis_cases import CLEAN, FAULTS, Case, draw_case
from homeostat.lab.bench.diagnosis_rivals import CLAIMS
from homeostat.sim.truth import TruthSample
from homeostat.sim.truth_labels import Label, Labels

# A diagnosis counts at the end of a run if it was made in this many of the last batches. A choice: more than half.
_LAST_BATCHES, _STOOD = 5, 3
# Not causes of problems: they say that there is no problem, or that no cause was found.
NO_TROUBLE = frozenset({OVER_PROVISIONED, INCONCLUSIVE, NEEDLESS_SPREAD, RISE_AHEAD, SLO_UNMET})
_BINS = 10


@dataclass(slots=True)
class Score:
    """One run: the right and the wrong diagnoses at its end, when the cause was first named, and the proposals.

    `batches_until_right` has a number for each fault, in the same order for every policy; infinity if it was never
    named. A run that is `too_short` had too few batches after its fault to be scored.
    """

    clean: bool = False
    too_short: bool = False
    right: list[str] = field(default_factory=list)
    missed: list[str] = field(default_factory=list)
    wrong: list[str] = field(default_factory=list)
    batches_until_right: list[float] = field(default_factory=list)
    sure: list[tuple[float, bool]] = field(default_factory=list)
    vain_scaling: int = 0


def score(case: Case, policy: Policy) -> Score:
    """Run the case without acting on it, and compare the diagnoses of its last batches with the truth."""
    played = play(case, policy)
    end = played.truth[-1]
    began_s = min((label.at_s for label in played.labels.all), default=0.0)
    if sum(sample.at_s >= began_s for sample in played.truth) < _LAST_BATCHES + _STOOD:
        return Score(too_short=True)
    standing, acting = played.labels.standing(end), played.labels.acting(end)
    last = [cycle.diagnoses for cycle in played.cycles[-_LAST_BATCHES:]]
    counts = Counter((d.cause, d.component) for diagnoses in last for d in diagnoses)
    stood = [key for key, count in counts.items() if count >= _STOOD and key[0] not in NO_TROUBLE]
    run = Score(clean=case.kinds == (CLEAN,))
    for label in (each for each in standing if _is_worth_naming(case, played.labels, each, end)):
        run.right += [label.cause] if any(label.matches(*key) for key in stood) else []
        run.missed += [] if any(label.matches(*key) for key in stood) else [label.cause]
        run.batches_until_right.append(_batches_until_right(label, played.cycles))
    run.wrong = [cause for cause, component in stood if not is_right(cause, component, acting)]
    for diagnosis in last[-1] if last else ():
        if diagnosis.cause not in NO_TROUBLE:
            right = is_right(diagnosis.cause, diagnosis.component, acting)
            run.sure.append((diagnosis.probability, right))
    run.vain_scaling = sum(_is_vain(played, advice) for advice in played.scaled)
    return run


def _is_vain(played: PlayedRun, advice: Scaling) -> bool:
    """Whether a problem existed that executors do not solve, and the advice was to add some, or to remove some while
    batches were late."""
    before = [sample for sample in played.truth if sample.at_s <= advice.at_s]
    standing = played.labels.standing(before[-1]) if before else ()
    if not standing or any(label.scaling_helps for label in standing):
        return False
    return advice.grows or not before[-1].healthy


def _is_worth_naming(case: Case, labels: Labels, label: Label, sample: TruthSample) -> bool:
    """Whether the fault costs so much that it must be named. A cheaper one may be named, but need not be.

    More executors can also compensate for a fault. Under-provisioning is then a right diagnosis, but need not be named.
    """
    if label.cause == UNDER_PROVISIONED:
        return labels.is_short_without_faults(sample)
    if label.silent or label.cause == FAILING_TASKS:
        return True
    cost_s = labels.cost_s(label, sample.at_s, sample.values) if label.fault is not None else 0.0
    return cost_s >= WORTH_NAMING * case.trigger_s


def _batches_until_right(label: Label, cycles: Sequence[Cycle]) -> float:
    after = [cycle.diagnoses for cycle in cycles if cycle.at_s >= label.at_s]
    for number, diagnoses in enumerate(after):
        if any(label.matches(d.cause, d.component) for d in diagnoses):
            return number + 1
    return math.inf


def cases(runs: int, first_seed: int, pairs: float = 0.3) -> Iterator[Case]:
    """Runs with one kind of fault, every kind in turn, and a share of runs with a random pair of kinds. Clean runs are
    as frequent as one kind."""
    kinds: list[tuple[str, ...]] = [(kind,) for kind in (CLEAN, *FAULTS)]
    couples = list(combinations(FAULTS, 2))
    random = np.random.default_rng([first_seed, 7])
    for number in range(runs):
        is_pair = random.random() < pairs
        chosen = couples[int(random.integers(len(couples)))] if is_pair else kinds[number % len(kinds)]
        yield draw_case(first_seed + number, chosen)


def measure(
    policies: Mapping[str, Policy], drawn: Iterable[Case], tell: Callable[[str], None] = lambda text: None
) -> dict[str, Any]:
    """Score every policy on the same runs."""
    began_s = time.monotonic()
    scores: dict[str, list[Score]] = defaultdict(list)
    runs = 0
    for runs, case in enumerate(drawn, start=1):
        for name, policy in policies.items():
            scores[name].append(score(case, policy))
        if runs % 100 == 0:
            tell(f"{runs} runs")
    return {
        "runs": runs,
        "seconds": time.monotonic() - began_s,
        "policies": {name: summary(each, CLAIMS.get(name)) for name, each in scores.items()},
        "beside": beside(scores),
    }


def summary(scores: Sequence[Score], claims: frozenset[str] | None = None) -> dict[str, Any]:
    """Precision, recall and F1 for each cause and their mean, calibration, and the time until a right diagnosis.

    `claims` are the causes that can be named at all; None for all of them. Their mean F1 is given beside that of all.
    """
    right, missed, wrong = (
        Counter(cause for each in scores for cause in getattr(each, name)) for name in ("right", "missed", "wrong")
    )
    causes = {
        cause: _quality(right[cause], missed[cause], wrong[cause])
        for cause in sorted({*right, *missed, *wrong})
        if right[cause] + missed[cause]
    }
    claimed = [each["f1"] for cause, each in causes.items() if claims is None or cause in claims]
    waits = [count for each in scores for count in each.batches_until_right]
    needed = [count for count in waits if math.isfinite(count)]
    clean = [each for each in scores if each.clean]
    return {
        "macro_f1": float(np.mean([each["f1"] for each in causes.values()])) if causes else math.nan,
        "claims": sorted(causes if claims is None else claims),
        "macro_f1_of_claims": float(np.mean(claimed)) if claimed else math.nan,
        "causes": causes,
        "wrong": dict(wrong.most_common()),
        "calibration_error": calibration_error([pair for each in scores for pair in each.sure]),
        "batches_until_right_median": float(np.median(needed)) if needed else math.nan,
        "batches_until_right_p90": float(np.quantile(needed, 0.9)) if needed else math.nan,
        "never_named": len(waits) - len(needed),
        "vain_scaling_runs": sum(each.vain_scaling > 0 for each in scores),
        "too_short_runs": sum(each.too_short for each in scores),
        "clean_runs": len(clean),
        "clean_runs_with_a_diagnosis": sum(bool(each.wrong) for each in clean),
    }


def beside(scores: Mapping[str, Sequence[Score]]) -> dict[str, Any]:
    """Compares how soon the first policy and each other one name a fault, on the faults that both name.

    In the medians of all faults, a fault that is never named counts as infinity.
    """
    (_, ours), *others = scores.items()
    mine = [count for each in ours for count in each.batches_until_right]
    comparison = {}
    for name, each in others:
        theirs = [count for score in each for count in score.batches_until_right]
        both = np.array([pair for pair in zip(mine, theirs, strict=True) if all(map(math.isfinite, pair))])
        medians = np.median(both, axis=0).tolist() if len(both) else [math.nan, math.nan]
        comparison[name] = {
            "faults": len(mine),
            "named_by_ours": sum(map(math.isfinite, mine)),
            "named_by_it": sum(map(math.isfinite, theirs)),
            "named_by_both": len(both),
            "batches_until_right_median": dict(zip(("ours", "its"), medians, strict=True)),
            "batches_until_right_median_of_all": {"ours": float(np.median(mine)), "its": float(np.median(theirs))}
            if mine
            else None,
            "batches_until_right_ratio": medians[0] / medians[1],
        }
    return comparison


def _quality(right: int, missed: int, wrong: int) -> dict[str, float]:
    recall = right / (right + missed)
    precision = right / (right + wrong) if right + wrong else 0.0
    f1 = 2 * precision * recall / (precision + recall) if precision + recall else 0.0
    return {"cases": right + missed, "recall": recall, "precision": precision, "f1": f1}


def calibration_error(sure: Sequence[tuple[float, bool]]) -> float:
    """The mean difference between the probability of diagnoses and the share of right ones, over ten bins."""
    if not sure:
        return math.nan
    probabilities, right = np.array([p for p, _ in sure]), np.array([float(r) for _, r in sure])
    bins = np.minimum((probabilities * _BINS).astype(int), _BINS - 1)
    gaps = [
        (bins == b).sum() * abs(float(probabilities[bins == b].mean()) - float(right[bins == b].mean()))
        for b in np.unique(bins)
    ]
    return float(sum(gaps) / len(sure))
