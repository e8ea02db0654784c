"""Turns a rule of another system (how many instances of what) into symptoms, diagnoses and proposals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from homeostat.core.arbiter import InOrderArbiter
from homeostat.core.configuration import Knob, Patch
from homeostat.core.findings import (
    INCONCLUSIVE,
    OVER_PROVISIONED,
    SCALE_DOWN,
    SCALE_UP,
    UNDER_PROVISIONED,
    UNKNOWN,
    Diagnosis,
    Evidence,
    Outcome,
    Prediction,
    Proposal,
    Symptom,
)
from homeostat.core.guards import Bounds, KillSwitch, OneInFlight, guard_chain
from homeostat.core.memory import ActionKey, Context, Entries, MemoryEntry
from homeostat.core.policy import Policy
from homeostat.core.trial import Trial
from homeostat.core.view import View
from homeostat.detectors.window_means import missing_metric
from homeostat.policies.peers.measurements import Unit

TOO_SMALL = "too-small"
TOO_LARGE = "too-large"
GUARDS = guard_chain(KillSwitch(), OneInFlight(), Bounds())
_CAUSES = {TOO_SMALL: UNDER_PROVISIONED, TOO_LARGE: OVER_PROVISIONED, UNKNOWN: INCONCLUSIVE}


class Target(NamedTuple):
    """The size that the rule recommends for a unit, and the numbers it was computed from."""

    unit: Unit
    wanted: int
    evidence: Evidence


class Missing(NamedTuple):
    """A metric that the rule needs and does not have."""

    metric: str
    component: str = ""


class Rule(Protocol):
    @property
    def name(self) -> str: ...

    def targets(self, view: View) -> Sequence[Target] | Missing:
        """Return the recommended sizes; empty while it is too early to say."""
        ...


@dataclass(frozen=True, slots=True)
class RuleDetector:
    """Yields a symptom for every unit without the recommended size. Incomplete data never makes a unit too large."""

    rule: Rule

    @property
    def name(self) -> str:
        return self.rule.name

    def detect(self, view: View) -> Iterator[Symptom]:
        targets = self.rule.targets(view)
        if isinstance(targets, Missing):
            yield self._unknown(targets.metric, targets.component)
            return
        missing = missing_metric(view) if any(t.wanted < t.unit.now for t in targets) else ""
        for unit, wanted, evidence in targets:
            if wanted < unit.now and missing:
                yield self._unknown(missing, unit.component)
            elif wanted != unit.now:
                kind = TOO_SMALL if wanted > unit.now else TOO_LARGE
                severity = 1.0 - min(wanted, unit.now) / max(wanted, unit.now)
                numbers = {"now": float(unit.now), "wanted": float(wanted), **evidence}
                yield Symptom(kind, unit.component, severity, numbers)

    def _unknown(self, missing: str, component: str) -> Symptom:
        return Symptom(UNKNOWN, component, evidence={"detector": self.name, "missing": missing})


@dataclass(frozen=True, slots=True)
class SizeDiagnoser:
    """A rule that only sizes knows two causes: too few and too many instances."""

    name: str = "size"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind in _CAUSES:
                yield Diagnosis(_CAUSES[symptom.kind], symptom.component, 1.0, symptom.evidence, (symptom,))


@dataclass(frozen=True, slots=True)
class SizeResolver:
    """Proposes all changes of a query together."""

    name: str = "size"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        queries: dict[str, list[Diagnosis]] = {}
        for diagnosis in diagnoses:
            if "wanted" in diagnosis.evidence:
                queries.setdefault(view.topology[diagnosis.component].query, []).append(diagnosis)
        for mine in queries.values():
            yield _together(view, mine)


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Learns nothing and blocks nothing: these systems do not remember what did not help."""

    def learn(self, entries: Entries, entry: MemoryEntry) -> Entries:
        return entries

    def blocked(self, entries: Entries, key: ActionKey, context: Context, now_s: float, settle_s: float) -> str:
        return ""

    def success_rate(self, entries: Entries, key: ActionKey) -> float:
        return 0.5


@dataclass(frozen=True, slots=True)
class NoJudge:
    """Does not judge outcomes, so no action is ever reverted."""

    def judge(self, trial: Trial) -> Outcome | None:
        if trial.elapsed_s < trial.settle_s:
            return None
        return Outcome("unclear", predicted_gain=trial.prediction.gain, reason="this rule does not judge its actions")


def rule_policy(rule: Rule, *, cadence_s: float, settle_s: float, window_s: float) -> Policy:
    return Policy(
        name=rule.name,
        detectors=(RuleDetector(rule),),
        diagnosers=(SizeDiagnoser(),),
        resolvers=(SizeResolver(),),
        cadence_s=cadence_s,
        settle_s=settle_s,
        window_s=window_s,
        arbiter=InOrderArbiter(),
        guards=GUARDS,
        memory=NoMemory(),
        judge=NoJudge(),
    )


def _together(view: View, diagnoses: Sequence[Diagnosis]) -> Proposal:
    def gain(diagnosis: Diagnosis) -> float:
        return math.log(float(diagnosis.evidence["wanted"]) / float(diagnosis.evidence["now"]))

    most_first = sorted(diagnoses, key=gain, reverse=True)
    first = most_first[0]
    values: dict[Knob, int] = {
        view.topology[d.component].scaled_by: int(float(d.evidence["wanted"])) for d in most_first
    }
    touched = [first.component, *(c.name for c in view.topology if c.scaled_by in values and c.name != first.component)]
    text = ", ".join(f"{d.component} can take {math.expm1(gain(d)):+.0%}" for d in most_first)
    grows = gain(first) > 0
    return Proposal(
        SCALE_UP if grows else SCALE_DOWN,
        tuple(most_first),
        Patch(values),
        first.component,
        Prediction(gain(first), tuple(touched), text),
        benefit=abs(1.0 - math.exp(-gain(first))),
    )
