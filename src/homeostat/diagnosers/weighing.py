"""Weighs every cause against the others, by what the capacity would be without it. Several at once are normal."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.causes import (
    ADMISSION_LIMITED,
    DATA_SKEW,
    EXTERNAL,
    HASH_IMBALANCE,
    INCONCLUSIVE,
    NEEDLESS_SPREAD,
    OVER_PROVISIONED,
    SLO_UNMET,
    SLOW_INSTANCE,
    SOURCE_LIMITED,
    SOURCE_SKEW,
    UNDER_PROVISIONED,
)
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.stats import median
from homeostat.core.symptoms import (
    ADMISSION_BOUND,
    EVEN_KEYS,
    GROWING_BACKLOG,
    IDLE,
    PENDING_SKEW,
    PRESSURE,
    RATE_SKEW,
    SLO_VIOLATION,
    SPEED_SKEW,
    STATE_SYMPTOMS,
    UNEVEN,
    UNKNOWN,
)
from homeostat.core.view import View
from homeostat.core.wording import whole
from homeostat.detectors.instance_skew import LostWorkers, RowsOverPeers, SlowWorkers
from homeostat.detectors.pressure import PressureEvidence
from homeostat.detectors.slo_violation import THROUGHPUT, ObjectiveMissed
from homeostat.detectors.uneven_partitions import UnevenEvidence
from homeostat.diagnosers.uneven_keys import by_hash, largest_key
from homeostat.models.capacity import Load, level, loads

_ALMOST_IDLE = 0.2
_LEAST_LAG = 1.15
# How many times slower than its peers, over three observations, to be rather slow than not.
_TELLING, _TELLING_PRESSED = 1.8, 1.5
_SHOWN_BY = {SLOW_INSTANCE: SPEED_SKEW, HASH_IMBALANCE: UNEVEN}


@dataclass(frozen=True, slots=True)
class WeighedCauses(Evidence):
    """The causes that were weighed, with their probabilities, and the figures that they were weighed by."""

    causes_weighed: str
    capacity_per_s: float | None = None
    even_capacity_per_s: float | None = None
    imbalance: float | None = None
    largest_key_share: float | None = None
    largest_key: str = ""

    def summary(self) -> str:
        if self.largest_key_share is not None:
            name = f" {self.largest_key}" if self.largest_key else ""
            return f"the largest key{name} has {self.largest_key_share:.0%} of the rows"
        return "" if self.capacity_per_s is not None else f"causes weighed: {self.causes_weighed}"


@dataclass(frozen=True, slots=True)
class Unexplained(Evidence):
    why: str

    def summary(self) -> str:
        return self.why


@dataclass(frozen=True, slots=True)
class TooLittleArrives(Evidence):
    arrival_per_s: float
    objective_per_s: float

    def summary(self) -> str:
        arrival, objective = whole(self.arrival_per_s), whole(self.objective_per_s)
        return f"{arrival} rows/s arrive, {objective} are asked for"


@dataclass(frozen=True, slots=True)
class UnmetObjective(Evidence):
    arrival_per_s: float
    missed: Evidence = Evidence()

    def summary(self) -> str:
        return self.missed.summary()


def sureness(value: float, middle: float, width: float) -> float:
    """0.05 … 0.95, one half at `middle`: how far a measured value speaks for a cause."""
    return 0.5 + 0.45 * math.tanh((value - middle) / width)


@dataclass(frozen=True, slots=True)
class EvidenceDiagnoser:
    """For each component in trouble: slow instance, data skew, hash imbalance, source skew, under-provisioned, held up
    from outside, or inconclusive. For the others: over-provisioned, or spread without need. `likely` is the probability
    from which a cause is named."""

    likely: float = 0.5
    name: str = "evidence"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        bound = next((symptom for symptom in symptoms if symptom.kind == ADMISSION_BOUND), None)
        if bound is not None:
            # Whatever else shows then (a backlog, an objective not met) follows from it: the batches are healthy.
            also = (s for s in symptoms if s.kind in (GROWING_BACKLOG, SLO_VIOLATION))
            yield Diagnosis(ADMISSION_LIMITED, "", 0.9, bound.evidence, (bound, *also))
            return
        by_component: dict[str, dict[str, Symptom]] = {}
        for symptom in symptoms:
            if symptom.kind != UNKNOWN:
                by_component.setdefault(symptom.component, {})[symptom.kind] = symptom
        known = loads(view)
        troubled = False
        for name in sorted(by_component, key=lambda n: -view.topology.depth.get(n, -1)):
            found = by_component[name]
            if name and not found.keys().isdisjoint({PRESSURE, SPEED_SKEW}):
                troubled = True
                yield from self._trouble(view, known.get(name), name, found)
        overall = by_component.get("", {})
        if not troubled:
            yield from self._whole(view, overall, symptoms)
        calm = not troubled and GROWING_BACKLOG not in overall and SLO_VIOLATION not in overall
        for name, found in by_component.items():
            if calm and IDLE in found:
                evidence = found[IDLE].evidence
                yield Diagnosis(OVER_PROVISIONED, name, 0.9, evidence, (found[IDLE],))
            if calm and EVEN_KEYS in found:
                yield Diagnosis(NEEDLESS_SPREAD, name, 0.9, found[EVEN_KEYS].evidence, (found[EVEN_KEYS],))

    def _trouble(self, view: View, load: Load | None, name: str, found: dict[str, Symptom]) -> Iterator[Diagnosis]:
        lagging = _lagging(view, load, name, found)
        found = {**found, SPEED_SKEW: lagging} if lagging is not None else found
        scores = {
            SLOW_INSTANCE: _slow(found),
            DATA_SKEW: _skewed(found),
            EXTERNAL: _held_up(view, name, found),
            UNDER_PROVISIONED: _short(load, found),
        }
        if UNEVEN in found and PRESSURE in found:
            hashed = by_hash(view, name, found[UNEVEN])
            scores |= {HASH_IMBALANCE: hashed * _uneven(found[UNEVEN])}
            scores[DATA_SKEW] = scores[DATA_SKEW] if hashed < self.likely else 0.05
        if name in view.topology and view.topology[name].kind == "source":
            scores[SOURCE_SKEW] = scores.pop(DATA_SKEW)
        ranking = ", ".join(f"{cause} {score:.2f}" for cause, score in sorted(scores.items(), key=lambda i: -i[1]))
        symptoms = tuple(found.values())
        named = [cause for cause, score in scores.items() if score >= self.likely]
        for cause in named:
            source = found.get(_SHOWN_BY.get(cause, RATE_SKEW))
            yield Diagnosis(
                cause,
                name,
                scores[cause],
                _weighed(ranking, load, *largest_key(view, name)),
                symptoms,
                source.instances if source is not None else (),
                source.workers if source is not None else (),
            )
        if not named and PRESSURE in found:
            yield Diagnosis(INCONCLUSIVE, name, max(scores.values()), WeighedCauses(ranking), symptoms)

    def _whole(self, view: View, overall: dict[str, Symptom], symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        """Trouble that no component shows."""
        if SLO_VIOLATION in overall:
            yield from _slo(view, [symptom for symptom in symptoms if symptom.kind == SLO_VIOLATION])
        elif GROWING_BACKLOG in overall:
            missing = (s for s in symptoms if s.kind == UNKNOWN)
            unknown = tuple(s for s in missing if _detector(s) not in STATE_SYMPTOMS)
            why = "no component shows pressure" if not unknown else "metrics are missing"
            yield Diagnosis(INCONCLUSIVE, "", 0.5, Unexplained(why), (overall[GROWING_BACKLOG], *unknown))


def _slow(found: dict[str, Symptom]) -> float:
    symptom = found.get(SPEED_SKEW)
    if symptom is None:
        return 0.05
    if symptom.evidence.find(LostWorkers) is not None:
        return 0.95
    slow = symptom.evidence.find(SlowWorkers)
    if slow is not None and slow.capacity_without_it_per_s is not None:
        return 0.75
    # The longer it lasts, the smaller the difference that tells.
    lasting = LEAST_OBSERVATIONS if slow is None or slow.observations_in_a_row is None else slow.observations_in_a_row
    middle = _TELLING_PRESSED if PRESSURE in found else 1.0 + (_TELLING - 1.0) * LEAST_OBSERVATIONS / lasting
    return sureness(_times_peers(symptom, slow), middle, 0.4)


def _lagging(view: View, load: Load | None, name: str, found: dict[str, Symptom]) -> Symptom | None:
    """Who is a little slower than its peers, where the load would fit if it were not: too little to stand out, but
    nothing else explains the pressure."""
    if PRESSURE not in found or load is None or view.micro_batch or not {SPEED_SKEW, RATE_SKEW}.isdisjoint(found):
        return None
    if not _offered_per_s(found[PRESSURE], math.inf) * load.imbalance <= load.even_per_s:
        return None
    window = view.window.last(LEAST_OBSERVATIONS)
    rows, run_s = window.tasks(name, "rows").sum(axis=0), window.tasks(name, "run_s").sum(axis=0)
    if len(window) < LEAST_OBSERVATIONS or len(rows) < 2 or not (rows > 0).all() or not np.isfinite(run_s).all():
        return None
    per_row = run_s / rows
    worst = int(per_row.argmax())
    ratio = float(per_row[worst]) / median(np.delete(per_row, worst))
    if ratio < _LEAST_LAG:
        return None
    evidence = SlowWorkers(ratio, capacity_without_it_per_s=load.even_per_s)
    return Symptom(SPEED_SKEW, name, 1.0 - 1.0 / ratio, evidence, (worst,), view.workers_of(name, (worst,)))


def _skewed(found: dict[str, Symptom]) -> float:
    """Rows and waiting high together, at the same instances."""
    rows, waiting = found.get(RATE_SKEW), found.get(PENDING_SKEW)
    if rows is None or PRESSURE not in found:
        return 0.05
    together = waiting is not None and bool(set(rows.instances) & set(waiting.instances))
    score = sureness(_times_peers(rows, rows.evidence.find(RowsOverPeers)), 1.4, 0.4)
    return score if together else 0.8 * score


def _uneven(symptom: Symptom) -> float:
    uneven = symptom.evidence.find(UnevenEvidence)
    return sureness(uneven.largest_over_mean if uneven is not None else 1.0, 1.3, 0.2)


def _times_peers(symptom: Symptom, measured: SlowWorkers | RowsOverPeers | None) -> float:
    """How many times its peers; another detector may tell it by the severity alone."""
    return measured.times_peers if measured is not None else 1.0 / max(1.0 - symptom.severity, 1e-3)


def _offered_per_s(pressure: Symptom, default: float) -> float:
    measured = pressure.evidence.find(PressureEvidence)
    return default if measured is None or measured.offered_per_s is None else measured.offered_per_s


def _detector(symptom: Symptom) -> str:
    gap = symptom.evidence.find(MissingMetric)
    return gap.detector if gap is not None else ""


def _held_up(view: View, name: str, found: dict[str, Symptom]) -> float:
    """It holds its senders back though it hardly works: it waits for something outside."""
    if PRESSURE not in found or view.micro_batch:
        return 0.05
    busiest = view.column(name, "busiest_s", last=LEAST_OBSERVATIONS)
    span = view.flow("span_s", last=LEAST_OBSERVATIONS)
    known = len(busiest) > 0 and bool(np.isfinite(busiest).all()) and bool((span > 0).all())
    if not known or view.topology.downstream(name):
        return 0.05
    return 0.9 if float(np.mean(busiest / span)) < _ALMOST_IDLE else 0.05


def _short(load: Load | None, found: dict[str, Symptom]) -> float:
    """Even with every instance at the typical speed and an even share it would not be enough."""
    if PRESSURE not in found:
        return 0.05
    if load is None or not (math.isfinite(load.even_per_s) and load.known):
        return 0.3
    offered = _offered_per_s(found[PRESSURE], level(load.offered_per_s))
    even = load.even_per_s / (1.0 if RATE_SKEW in found else load.imbalance)
    if not (offered > 0 and even > 0):
        return 0.3
    return sureness(math.log(offered / (even * load.target)), 0.0, 0.05)


def _weighed(ranking: str, load: Load | None, key_share: float | None, key: str) -> WeighedCauses:
    if load is None:
        return WeighedCauses(ranking, largest_key_share=key_share, largest_key=key)
    return WeighedCauses(ranking, load.capacity_per_s, load.even_per_s, load.imbalance, key_share, key)


def _slo(view: View, violations: Sequence[Symptom]) -> Iterator[Diagnosis]:
    """That too little arrives excuses a throughput that is not reached, but no latency."""
    wanted = view.objective.throughput_per_s
    arrivals = view.flow("arrival_per_s", last=6)
    arrival = float(np.nanmedian(arrivals)) if np.isfinite(arrivals).any() else math.nan
    starved = wanted is not None and arrival < 0.98 * wanted
    excused = tuple(s for s in violations if starved and _is_about_throughput(s))
    if wanted is not None and excused:
        yield Diagnosis(SOURCE_LIMITED, "", 0.9, TooLittleArrives(arrival, wanted), excused)
    unmet = tuple(sorted((s for s in violations if s not in excused), key=lambda s: -s.severity))
    if unmet:
        yield Diagnosis(SLO_UNMET, "", 0.8, UnmetObjective(arrival, unmet[0].evidence), unmet)


def _is_about_throughput(symptom: Symptom) -> bool:
    missed = symptom.evidence.find(ObjectiveMissed)
    return missed is not None and missed.metric == THROUGHPUT
