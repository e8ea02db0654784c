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
from dataclasses import dataclass, replace

from homeostat.core.causes import (
    DATA_SKEW,
    INCONCLUSIVE,
    OVER_PROVISIONED,
    SLO_UNMET,
    SLOW_INSTANCE,
    SOURCE_LIMITED,
    UNDER_PROVISIONED,
)
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import GROWING_BACKLOG, IDLE, PENDING_SKEW, PRESSURE, RATE_SKEW, SLO_VIOLATION, UNKNOWN
from homeostat.core.view import View
from homeostat.detectors.paper_thresholds import BackPressure, ThroughputMissed

_CAUSES = {
    (False, False): UNDER_PROVISIONED,
    (True, False): SLOW_INSTANCE,
    (True, True): DATA_SKEW,
    (False, True): INCONCLUSIVE,
}
_OTHER_CAUSES = {
    DATA_SKEW: (SLOW_INSTANCE, UNDER_PROVISIONED),
    SLOW_INSTANCE: (UNDER_PROVISIONED,),
}
_GAP = "the rates differ but the queues do not, and the table has no entry for this"


@dataclass(frozen=True, slots=True)
class TableReading(Evidence):
    """The measurements behind an answer of the table. `instead_of`: the cause that the table itself gives."""

    why: str = ""
    missing: str = ""
    holds_back: str = ""
    instead_of: str = ""
    pressure: float | None = None
    measured: Evidence = Evidence()

    def summary(self) -> str:
        measured = self.measured.summary()
        # Where nothing was measured, the symptom says what is missing.
        gaps = f"missing: {self.missing}" if self.missing and measured else ""
        return ", ".join(filter(None, (self.why, gaps, measured)))


@dataclass(frozen=True, slots=True)
class PaperTable:
    """One diagnosis for each bottleneck, the most downstream one first. Every symptom leads to a diagnosis.

    `tolerance`: by which share a rate may miss the objective before it counts. A smaller share alarms on noise. The
    paper gives none; this is the tolerance of our own detector of objectives.
    """

    tolerance: float = 0.02
    name: str = "paper-table"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        at = _by_component(symptoms)
        components_under_pressure = {s.component for s in symptoms if s.kind == PRESSURE}
        for symptom, held_back in bottlenecks(view, symptoms):
            yield table(symptom, at[symptom.component], held_back)
        yield from _missing_metrics(symptoms, components_under_pressure)
        if not components_under_pressure:
            yield from _without_pressure(view, symptoms)
        if not components_under_pressure and not _pressure_unknown(symptoms):
            yield from self._slo(view, symptoms)

    def _slo(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in (s for s in symptoms if s.kind == SLO_VIOLATION):
            missed_throughput = symptom.evidence.find(ThroughputMissed)
            if missed_throughput is None:
                continue
            arrival, objective = missed_throughput.arrival_per_s, missed_throughput.objective_per_s
            if not math.isfinite(arrival):
                yield Diagnosis(INCONCLUSIVE, "", 1.0, TableReading(missing="arrival_per_s"), (symptom,))
                continue
            if arrival < objective * (1.0 - self.tolerance):
                yield Diagnosis(SOURCE_LIMITED, "", 1.0, symptom.evidence, (symptom,))
            if missed_throughput.observed_per_s < min(objective, arrival) * (1.0 - self.tolerance):
                for source in view.topology.sources:
                    yield Diagnosis(SLO_UNMET, source.name, 1.0, symptom.evidence, (symptom,))


@dataclass(frozen=True, slots=True)
class NextReading:
    """Other causes that fit the symptoms, for the case that the action against the table's answer is blacklisted.

    In the paper's fifth experiment "the next diagnosis" succeeds. `probability` is that of the first of them, and
    halves with each further one, so that they stay behind the table's answer (choice).
    """

    probability: float = 0.5
    name: str = "next-reading"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        at = _by_component(symptoms)
        for symptom, held_back in bottlenecks(view, symptoms):
            first = table(symptom, at[symptom.component], held_back)
            if not isinstance(first.evidence, TableReading) or first.evidence.missing:
                continue
            for number, cause in enumerate(_OTHER_CAUSES.get(first.cause, ())):
                evidence = replace(first.evidence, instead_of=first.cause)
                probability = self.probability / 2**number
                yield Diagnosis(
                    cause, first.component, probability, evidence, first.symptoms, first.instances, first.workers
                )


def bottlenecks(view: View, symptoms: Sequence[Symptom]) -> list[tuple[Symptom, tuple[Symptom, ...]]]:
    """The components under pressure without another one under pressure downstream, the most downstream one first.

    Each comes with the pressure upstream that it explains: a component that is held back need not be too small itself.
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
    evidence = TableReading(
        pressure=_pressure(pressure),
        measured=pressure.evidence,
        holds_back=", ".join(s.component for s in held_back),
        missing=", ".join(_missing(s) for s in gaps),
    )
    if gaps:
        return Diagnosis(INCONCLUSIVE, pressure.component, 1.0, evidence, (pressure, *gaps, *held_back))
    pending, rate = here.get(PENDING_SKEW), here.get(RATE_SKEW)
    cause = _CAUSES[pending is not None, rate is not None]
    if cause == INCONCLUSIVE:
        evidence = replace(evidence, why=_GAP)
    symptoms = (*(s for s in (pressure, pending, rate) if s is not None), *held_back)
    main_symptom = pressure if pressure.instances else pending or pressure
    if cause == UNDER_PROVISIONED:
        return Diagnosis(cause, pressure.component, 1.0, evidence, symptoms)
    return Diagnosis(cause, pressure.component, 1.0, evidence, symptoms, main_symptom.instances, main_symptom.workers)


def _without_pressure(view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
    depth = view.topology.depth
    objective_missed = any(s.kind == SLO_VIOLATION for s in symptoms)
    idle = [] if objective_missed else [s for s in symptoms if s.kind == IDLE]
    for symptom in sorted(idle, key=lambda s: -depth.get(s.component, -1)):
        yield Diagnosis(OVER_PROVISIONED, symptom.component, 1.0, symptom.evidence, (symptom,))
    for symptom in (s for s in symptoms if s.kind == GROWING_BACKLOG):
        evidence = TableReading(measured=symptom.evidence, why="a queue grows, but no component is held back yet")
        yield Diagnosis(INCONCLUSIVE, symptom.component, 1.0, evidence, (symptom,))


def _missing_metrics(symptoms: Sequence[Symptom], explained_components: set[str]) -> Iterator[Diagnosis]:
    """One inconclusive diagnosis for each component that lacks metrics and has no other diagnosis."""
    gaps: dict[str, list[Symptom]] = {}
    for symptom in symptoms:
        beside_the_point = bool(explained_components) and _detector(symptom) == IDLE
        if symptom.kind == UNKNOWN and symptom.component not in explained_components and not beside_the_point:
            gaps.setdefault(symptom.component, []).append(symptom)
    for component, unknown in gaps.items():
        missing = ", ".join(dict.fromkeys(_missing(s) for s in unknown))
        yield Diagnosis(INCONCLUSIVE, component, 1.0, TableReading(missing=missing), tuple(unknown))


def _detector(symptom: Symptom) -> str:
    gap = symptom.evidence.find(MissingMetric)
    return gap.detector if gap is not None else ""


def _missing(symptom: Symptom) -> str:
    gap = symptom.evidence.find(MissingMetric)
    return gap.missing if gap is not None else ""


def _pressure(symptom: Symptom) -> float:
    """The measured back-pressure. The severity stands for it if a detector gives no figures."""
    measured = symptom.evidence.find(BackPressure)
    return measured.pressure if measured is not None else symptom.severity


def _pressure_unknown(symptoms: Sequence[Symptom]) -> bool:
    return any(s.kind == UNKNOWN and _detector(s) == PRESSURE for s in symptoms)


def _by_component(symptoms: Sequence[Symptom]) -> dict[str, dict[str, Symptom]]:
    by_component: dict[str, dict[str, Symptom]] = {}
    for symptom in symptoms:
        kind = symptom.kind
        if kind == UNKNOWN:
            kind = f"{UNKNOWN}:{_detector(symptom)}"
        by_component.setdefault(symptom.component, {})[kind] = symptom
    return by_component
