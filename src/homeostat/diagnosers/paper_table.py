"""The paper's table: which symptoms at a component mean which cause.

| pressure at a component, and | cause |
|---|---|
| neither skew | under-provisioned |
| pending skew, no rate skew | slow instance |
| both skews | data skew |
| rate skew alone | inconclusive (the original says nothing) |
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from homeostat.core.findings import (
    DATA_SKEW,
    GROWING_BACKLOG,
    IDLE,
    INCONCLUSIVE,
    OVER_PROVISIONED,
    PENDING_SKEW,
    PRESSURE,
    RATE_SKEW,
    SLO_UNMET,
    SLO_VIOLATION,
    SLOW_INSTANCE,
    SOURCE_LIMITED,
    UNDER_PROVISIONED,
    UNKNOWN,
    Diagnosis,
    Symptom,
)
from homeostat.core.view import View

_CAUSES = {
    (False, False): UNDER_PROVISIONED,
    (True, False): SLOW_INSTANCE,
    (True, True): DATA_SKEW,
    (False, True): INCONCLUSIVE,
}
_NEXT = {
    DATA_SKEW: (SLOW_INSTANCE, UNDER_PROVISIONED),
    SLOW_INSTANCE: (UNDER_PROVISIONED,),
}
_GAP = "the rates differ, the queues do not: the table has no row for it"


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One diagnosis for each bottleneck, the most downstream one first; never silence about a symptom."""

    tolerance: float = 0.02
    name: str = "paper-table"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        at = _by_component(symptoms)
        pressured = {s.component for s in symptoms if s.kind == PRESSURE}
        for symptom, held_back in bottlenecks(view, symptoms):
            yield table(symptom, at[symptom.component], held_back)
        yield from _not_known(symptoms, pressured)
        if not pressured:
            yield from _without_pressure(view, symptoms)
        if not pressured and not _pressure_unknown(symptoms):
            yield from self._slo(view, symptoms)

    def _slo(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in (s for s in symptoms if s.kind == SLO_VIOLATION):
            arrival = float(symptom.evidence["arrival_per_s"])
            objective = float(symptom.evidence["objective_per_s"])
            if not math.isfinite(arrival):
                yield Diagnosis(INCONCLUSIVE, "", 1.0, {"missing": "arrival_per_s"}, (symptom,))
                continue
            if arrival < objective * (1.0 - self.tolerance):
                yield Diagnosis(SOURCE_LIMITED, "", 1.0, symptom.evidence, (symptom,))
            if float(symptom.evidence["observed_per_s"]) < min(objective, arrival) * (1.0 - self.tolerance):
                for source in view.topology.sources:
                    yield Diagnosis(SLO_UNMET, source.name, 1.0, symptom.evidence, (symptom,))


@dataclass(frozen=True, slots=True)
class NextReading:
    """What else the symptoms could mean, for when the action against the table's own answer is blacklisted.

    The paper's fifth experiment needs it: there "the next diagnosis" succeeds. `probability` halves with each reading.
    """

    probability: float = 0.5
    name: str = "next-reading"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        at = _by_component(symptoms)
        for symptom, held_back in bottlenecks(view, symptoms):
            first = table(symptom, at[symptom.component], held_back)
            if "missing" in first.evidence:
                continue
            for number, cause in enumerate(_NEXT.get(first.cause, ())):
                evidence = {**first.evidence, "instead of": first.cause}
                probability = self.probability / 2**number
                yield Diagnosis(
                    cause, first.component, probability, evidence, first.symptoms, first.instances, first.workers
                )


def bottlenecks(view: View, symptoms: Sequence[Symptom]) -> list[tuple[Symptom, tuple[Symptom, ...]]]:
    """The components under pressure that nothing under pressure lies below, the most downstream one first.

    Each comes with the pressure further up that it explains: what is held back need not be too small itself.
    """
    topology = view.topology
    pressure = {s.component: s for s in symptoms if s.kind == PRESSURE}
    holds_back: dict[str, set[str]] = {}
    for component in reversed(topology.components):
        below = [c.name for c in topology.downstream(component.name)]
        further_down = {root for name in below for root in holds_back[name]}
        holds_back[component.name] = further_down or ({component.name} & pressure.keys())
    roots = sorted((n for n in pressure if holds_back.get(n, {n}) == {n}), key=lambda n: -topology.depth.get(n, -1))
    return [
        (pressure[root], tuple(s for name, s in pressure.items() if name != root and root in holds_back.get(name, ())))
        for root in roots
    ]


def table(pressure: Symptom, here: Mapping[str, Symptom], held_back: tuple[Symptom, ...] = ()) -> Diagnosis:
    """The table's answer for one component under pressure, from the symptoms at that component by kind."""
    gaps = [s for kind, s in here.items() if kind in (f"{UNKNOWN}:{PENDING_SKEW}", f"{UNKNOWN}:{RATE_SKEW}")]
    evidence: dict[str, float | str] = {"pressure": pressure.severity, **pressure.evidence}
    if held_back:
        evidence["holds back"] = ", ".join(s.component for s in held_back)
    if gaps:
        evidence["missing"] = ", ".join(str(s.evidence.get("missing", "")) for s in gaps)
        return Diagnosis(INCONCLUSIVE, pressure.component, 1.0, evidence, (pressure, *gaps, *held_back))
    pending, rate = here.get(PENDING_SKEW), here.get(RATE_SKEW)
    cause = _CAUSES[pending is not None, rate is not None]
    if cause == INCONCLUSIVE:
        evidence["why"] = _GAP
    seen = (*(s for s in (pressure, pending, rate) if s is not None), *held_back)
    blamed = pressure if pressure.instances else pending or pressure
    if cause == UNDER_PROVISIONED:
        return Diagnosis(cause, pressure.component, 1.0, evidence, seen)
    return Diagnosis(cause, pressure.component, 1.0, evidence, seen, blamed.instances, blamed.workers)


def _without_pressure(view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
    depth = view.topology.depth
    wanting = any(s.kind == SLO_VIOLATION for s in symptoms)
    idle = [] if wanting else [s for s in symptoms if s.kind == IDLE]
    for symptom in sorted(idle, key=lambda s: -depth.get(s.component, -1)):
        yield Diagnosis(OVER_PROVISIONED, symptom.component, 1.0, symptom.evidence, (symptom,))
    for symptom in (s for s in symptoms if s.kind == GROWING_BACKLOG):
        evidence = {**symptom.evidence, "why": "a queue grows, but nothing is held back yet"}
        yield Diagnosis(INCONCLUSIVE, symptom.component, 1.0, evidence, (symptom,))


def _not_known(symptoms: Sequence[Symptom], explained: set[str]) -> Iterator[Diagnosis]:
    """One inconclusive diagnosis for each place where metrics are missing and nothing else was said."""
    gaps: dict[str, list[Symptom]] = {}
    for symptom in symptoms:
        beside_the_point = bool(explained) and symptom.evidence.get("detector") == IDLE
        if symptom.kind == UNKNOWN and symptom.component not in explained and not beside_the_point:
            gaps.setdefault(symptom.component, []).append(symptom)
    for component, found in gaps.items():
        missing = ", ".join(dict.fromkeys(str(s.evidence.get("missing", "")) for s in found))
        yield Diagnosis(INCONCLUSIVE, component, 1.0, {"missing": missing}, tuple(found))


def _pressure_unknown(symptoms: Sequence[Symptom]) -> bool:
    return any(s.kind == UNKNOWN and s.evidence.get("detector") == PRESSURE for s in symptoms)


def _by_component(symptoms: Sequence[Symptom]) -> dict[str, dict[str, Symptom]]:
    found: dict[str, dict[str, Symptom]] = {}
    for symptom in symptoms:
        kind = symptom.kind
        if kind == UNKNOWN:
            kind = f"{UNKNOWN}:{symptom.evidence.get('detector', '')}"
        found.setdefault(symptom.component, {})[kind] = symptom
    return found
