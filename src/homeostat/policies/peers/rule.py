"""Turns a rule of another system (how many instances of what) into symptoms, diagnoses and proposals."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, Protocol

from homeostat.core.actions import SCALE_DOWN, SCALE_UP
from homeostat.core.arbiter import InOrderArbiter
from homeostat.core.causes import INCONCLUSIVE, OVER_PROVISIONED, UNDER_PROVISIONED
from homeostat.core.configuration import Knob, Patch
from homeostat.core.evidence import Evidence, Measured, MissingMetric
from homeostat.core.findings import Diagnosis, Outcome, Prediction, Proposal, Symptom
from homeostat.core.guards import Bounds, KillSwitch, OneInFlight, guard_chain
from homeostat.core.memory import ActionKey, Context, Entries, MemoryEntry
from homeostat.core.policy_definition import Policy
from homeostat.core.symptoms import UNKNOWN
from homeostat.core.trial import Trial
from homeostat.core.view import View
from homeostat.detectors.window_means import missing_metric
from homeostat.policies.peers.measurements import Unit

TOO_SMALL = "too-small"
TOO_LARGE = "too-large"
GUARDS = guard_chain(KillSwitch(), OneInFlight(), Bounds())
_CAUSES = {TOO_SMALL: UNDER_PROVISIONED, TOO_LARGE: OVER_PROVISIONED, UNKNOWN: INCONCLUSIVE}


@dataclass(frozen=True, slots=True)
class WrongSize(Evidence):
    """What a rule wants instead of what there is, and the figures that it was computed from."""

    headline: ClassVar[str] = "{where} does not have the size that the rule requires"
    now: float
    wanted: float
    measured: Evidence = Measured()

    def summary(self) -> str:
        return f"{self.now:.0f} now, {self.wanted:.0f} wanted"


class Target(NamedTuple):
    """The size that the rule recommends for a unit, and the numbers it was computed from."""

    unit: Unit
    size: int
    measured: Mapping[str, float]


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
            yield self._unknown_symptom(targets.metric, targets.component)
            return
        missing = missing_metric(view) if any(t.size < t.unit.now for t in targets) else ""
        for unit, size, measured in targets:
            if size < unit.now and missing:
                yield self._unknown_symptom(missing, unit.component)
            elif size != unit.now:
                kind = TOO_SMALL if size > unit.now else TOO_LARGE
                severity = 1.0 - min(size, unit.now) / max(size, unit.now)
                evidence = WrongSize(float(unit.now), float(size), Measured(measured))
                yield Symptom(kind, unit.component, severity, evidence)

    def _unknown_symptom(self, missing: str, component: str) -> Symptom:
        return Symptom(UNKNOWN, component, evidence=MissingMetric(self.name, missing))


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
        queries: dict[str, list[Resize]] = {}
        for diagnosis in diagnoses:
            size = diagnosis.evidence.find(WrongSize)
            if size is not None:
                query = view.topology[diagnosis.component].query
                queries.setdefault(query, []).append(Resize(diagnosis, size))
        for resizes in queries.values():
            yield _together(view, resizes)


class Resize(NamedTuple):
    diagnosis: Diagnosis
    size: WrongSize

    @property
    def component(self) -> str:
        return self.diagnosis.component

    @property
    def gain(self) -> float:
        return math.log(self.size.wanted / self.size.now)


@dataclass(frozen=True, slots=True)
class NoMemory:
    """Learns nothing and blocks nothing: these systems do not remember what did not help."""

    def learn(self, entries: Entries, entry: MemoryEntry) -> Entries:
        return entries

    def block_reason(self, entries: Entries, key: ActionKey, context: Context, now_s: float, settle_s: float) -> str:
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


def _together(view: View, resizes: Sequence[Resize]) -> Proposal:
    most_first = sorted(resizes, key=lambda resize: resize.gain, reverse=True)
    first = most_first[0]
    values: dict[Knob, int] = {view.topology[r.component].scaled_by: int(r.size.wanted) for r in most_first}
    touched_components = [
        first.component,
        *(c.name for c in view.topology if c.scaled_by in values and c.name != first.component),
    ]
    text = ", ".join(f"{r.component} can take {math.expm1(r.gain):+.0%}" for r in most_first)
    return Proposal(
        SCALE_UP if first.gain > 0 else SCALE_DOWN,
        tuple(resize.diagnosis for resize in most_first),
        Patch(values),
        first.component,
        Prediction(first.gain, tuple(touched_components), text),
        benefit=abs(1.0 - math.exp(-first.gain)),
    )
