"""Weighs the possible causes by the capacity that there would be without each of them. Several can be true at once."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

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
from homeostat.core.evidence import Evidence, LostTime, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.stats import median
from homeostat.core.symptoms import (
    ADMISSION_BOUND,
    EVEN_KEYS,
    GROWING_BACKLOG,
    IDLE,
    LOST_TIME,
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
from homeostat.core.wording import span, whole
from homeostat.detectors.instance_skew import LostWorkers, RowsOverPeers, SlowWorkers
from homeostat.detectors.pressure import PressureEvidence
from homeostat.detectors.slo_violation import THROUGHPUT, ObjectiveMissed
from homeostat.detectors.uneven_partitions import UnevenEvidence
from homeostat.diagnosers.probabilities import (
    BY_ELIMINATION,
    EFFECT_SHOWN,
    EVEN_ODDS,
    NO_SIGN,
    NOT_MEASURED,
    REPORTED,
    SHOWN,
    sureness,
)
from homeostat.diagnosers.uneven_keys import by_hash, largest_key
from homeostat.models.batch_model import RECENT
from homeostat.models.capacity import Load, level, loads
from homeostat.models.recoverable import UNEVEN_ROWS
from homeostat.models.scaling_limit import scaling_limit
from homeostat.models.time_losses import time_losses

# A component that is busy for less than this share of the time, and still holds its senders back, waits for an external
# system. A larger share would blame the sink of a component that is only a little uneven. Choice.
_ALMOST_IDLE = 0.2
# How many times slower than its peers an instance must be to explain a pressure that nothing else explains. A smaller
# ratio would blame an instance for noise. Choice: below `ratio` of the detectors, which find the others.
_LEAST_LAG = 1.15
# How many times slower than its peers makes even odds for a slow instance, after three observations: without and with
# pressure. Smaller ratios find slow workers sooner and replace healthy ones more often. Choice.
_SLOW_RATIO, _SLOW_RATIO_UNDER_PRESSURE = 1.8, 1.5
# How many times the rows of its peers makes even odds for data skew. Choice, as above.
_SKEWED_RATIO = 1.4
# How many times the mean makes even odds for an uneven partition. Choice: unlike peers, the mean contains the partition
# itself, so the ratio is smaller.
_UNEVEN_RATIO = 1.3
# How far from even odds a ratio must be to be clear. Ratios to peers vary more than ratios to the mean. Choice.
_RATIO_WIDTH, _MEAN_RATIO_WIDTH = 0.4, 0.2
# How far ln(load ÷ capacity) must be from 0 to be clear: about 5 %, as far as capacities are off. Choice.
_SHORTAGE_WIDTH = 0.05
# How much of the skew's probability is left if the rows wait at other instances than those with the most rows. Choice.
_WITHOUT_WAITING = 0.8
# A component that is not more severe than this has no measurable ratio; keeps the division finite.
_SMALLEST_REST = 1e-3
# Less than this share of the throughput objective arrives: the sources are to blame. The 2 % are the tolerance of the
# detector of objectives. Choice.
_ARRIVES_IN_FULL = 0.98
_SHOWN_BY = {SLOW_INSTANCE: SPEED_SKEW, HASH_IMBALANCE: UNEVEN}


@dataclass(frozen=True, slots=True)
class WeighedCauses(Evidence):
    """The causes that were weighed, with their probabilities, and the figures that they were weighed by.

    A batch of `batch_s` would be `lost_s` shorter without the cause.
    """

    causes_weighed: str
    capacity_per_s: float | None = None
    even_capacity_per_s: float | None = None
    imbalance: float | None = None
    largest_key_share: float | None = None
    largest_key: str = ""
    lost_s: float | None = None
    batch_s: float | None = None

    @property
    def recoverable_s(self) -> float | None:
        return self.lost_s

    def summary(self) -> str:
        parts = []
        if self.largest_key_share is not None:
            name = f" {self.largest_key}" if self.largest_key else ""
            parts.append(f"the largest key{name} has {self.largest_key_share:.0%} of the rows")
        elif self.capacity_per_s is None:
            parts.append(f"causes weighed: {self.causes_weighed}")
        if self.lost_s and self.batch_s:
            shorter_s = max(0.0, self.batch_s - self.lost_s)
            parts.append(f"without it batches would take {span(shorter_s)} instead of {span(self.batch_s)}")
        return "; ".join(parts)


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
        return f"{arrival} rows/s arrive, but the objective is {objective}"


@dataclass(frozen=True, slots=True)
class UnmetObjective(Evidence):
    arrival_per_s: float
    missed: Evidence = Evidence()

    def summary(self) -> str:
        return self.missed.summary()


@dataclass(frozen=True, slots=True)
class EvidenceDiagnoser:
    """For each component in trouble: slow instance, data skew, hash imbalance, source skew, under-provisioned, waiting
    for an external system, or inconclusive. For the others: over-provisioned, or spread without need.

    `likely`: a cause with at least this probability is named. A lower value names more causes, also wrong ones. One
    half means "more likely than not" (choice).
    """

    likely: float = EVEN_ODDS
    name: str = "evidence"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        bound = next((symptom for symptom in symptoms if symptom.kind == ADMISSION_BOUND), None)
        if bound is not None:
            # The limit also explains a backlog or a missed objective, because the batches themselves are healthy.
            also = (s for s in symptoms if s.kind in (GROWING_BACKLOG, SLO_VIOLATION))
            yield Diagnosis(ADMISSION_LIMITED, "", SHOWN, bound.evidence, (bound, *also))
            return
        by_component: dict[str, dict[str, Symptom]] = {}
        for symptom in symptoms:
            if symptom.kind not in (UNKNOWN, LOST_TIME) or _is_uneven(symptom):
                by_component.setdefault(symptom.component, {})[symptom.kind] = symptom
        load_of = loads(view)
        is_troubled = False
        for name in sorted(by_component, key=lambda n: -view.topology.depth.get(n, -1)):
            here = by_component[name]
            if name and not here.keys().isdisjoint({PRESSURE, SPEED_SKEW, LOST_TIME}):
                is_troubled = True
                yield from self._trouble(view, load_of.get(name), name, here)
        overall = by_component.get("", {})
        if not is_troubled:
            yield from self._whole(view, overall, symptoms)
        limit = scaling_limit(view)
        late = limit is not None and limit.late and bool(limit.culprit)
        calm = not (is_troubled or late or GROWING_BACKLOG in overall or SLO_VIOLATION in overall)
        for name, here in by_component.items():
            if calm and IDLE in here:
                yield Diagnosis(OVER_PROVISIONED, name, SHOWN, here[IDLE].evidence, (here[IDLE],))
            if calm and EVEN_KEYS in here:
                yield Diagnosis(NEEDLESS_SPREAD, name, SHOWN, here[EVEN_KEYS].evidence, (here[EVEN_KEYS],))

    def _trouble(self, view: View, load: Load | None, name: str, here: dict[str, Symptom]) -> Iterator[Diagnosis]:
        lagging = _lagging(view, load, name, here)
        here = {**here, SPEED_SKEW: lagging} if lagging is not None else here
        scores = {
            SLOW_INSTANCE: _slow(here),
            DATA_SKEW: _skew(here),
            EXTERNAL: _held_up(view, name, here),
            UNDER_PROVISIONED: _short(view, load, here),
        }
        if UNEVEN in here and not here.keys().isdisjoint({PRESSURE, LOST_TIME}):
            share_by_hash = by_hash(view, name, here[UNEVEN])
            scores |= {HASH_IMBALANCE: share_by_hash * _uneven(here[UNEVEN])}
            scores[DATA_SKEW] = scores[DATA_SKEW] if share_by_hash < self.likely else NO_SIGN
        if name in view.topology and view.topology[name].kind == "source":
            scores[SOURCE_SKEW] = scores.pop(DATA_SKEW)
        elif name in view.topology and view.topology[name].joins:
            scores.pop(DATA_SKEW)  # the time that it costs is diagnosed as a skewed join
        ranking = ", ".join(f"{cause} {score:.2f}" for cause, score in sorted(scores.items(), key=lambda i: -i[1]))
        symptoms = tuple(here.values())
        likely_causes = [cause for cause, score in scores.items() if score >= self.likely]
        for cause in likely_causes:
            source = here.get(_SHOWN_BY.get(cause, RATE_SKEW))
            yield Diagnosis(
                cause,
                name,
                scores[cause],
                _with_loss(_weighed_causes(ranking, load, *largest_key(view, name)), view, cause, name),
                symptoms,
                source.instances if source is not None else (),
                source.workers if source is not None else (),
            )
        limit = scaling_limit(view)
        explained = limit is not None and limit.explained
        if not likely_causes and PRESSURE in here and not explained:
            yield Diagnosis(INCONCLUSIVE, name, max(scores.values()), WeighedCauses(ranking), symptoms)

    def _whole(self, view: View, overall: dict[str, Symptom], symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        """Problems of the whole application that do not show at any component."""
        if SLO_VIOLATION in overall:
            yield from _slo(view, [symptom for symptom in symptoms if symptom.kind == SLO_VIOLATION])
        elif GROWING_BACKLOG in overall and not any(symptom.kind == LOST_TIME for symptom in symptoms):
            missing = (s for s in symptoms if s.kind == UNKNOWN)
            unknown = tuple(s for s in missing if _detector(s) not in STATE_SYMPTOMS)
            why = "no component shows pressure" if not unknown else "metrics are missing"
            yield Diagnosis(INCONCLUSIVE, "", EVEN_ODDS, Unexplained(why), (overall[GROWING_BACKLOG], *unknown))


def _slow(here: dict[str, Symptom]) -> float:
    symptom = here.get(SPEED_SKEW)
    if symptom is None:
        return NO_SIGN
    if symptom.evidence.find(LostWorkers) is not None:
        return REPORTED
    slow = symptom.evidence.find(SlowWorkers)
    if slow is not None and slow.capacity_without_it_per_s is not None:
        return BY_ELIMINATION
    # The longer it lasts, the smaller the difference that is convincing.
    lasting = LEAST_OBSERVATIONS if slow is None or slow.observations_in_a_row is None else slow.observations_in_a_row
    patient = 1.0 + (_SLOW_RATIO - 1.0) * LEAST_OBSERVATIONS / lasting
    middle = _SLOW_RATIO_UNDER_PRESSURE if PRESSURE in here else patient
    return sureness(_times_peers(symptom, slow), middle, _RATIO_WIDTH)


def _lagging(view: View, load: Load | None, name: str, here: dict[str, Symptom]) -> Symptom | None:
    """An instance that is a little slower than its peers, if the load would fit at their speed.

    The difference is too small for the detector, but nothing else explains the pressure.
    """
    if PRESSURE not in here or load is None or view.micro_batch or not {SPEED_SKEW, RATE_SKEW}.isdisjoint(here):
        return None
    if not _offered_per_s(here[PRESSURE], math.inf) * load.imbalance <= load.even_per_s:
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


def _skew(here: dict[str, Symptom]) -> float:
    """Whether the same instances have the most rows and the most rows waiting."""
    rows, waiting = here.get(RATE_SKEW), here.get(PENDING_SKEW)
    if rows is None or here.keys().isdisjoint({PRESSURE, LOST_TIME}):
        return NO_SIGN
    together = waiting is not None and bool(set(rows.instances) & set(waiting.instances))
    score = sureness(_times_peers(rows, rows.evidence.find(RowsOverPeers)), _SKEWED_RATIO, _RATIO_WIDTH)
    return score if together else _WITHOUT_WAITING * score


def _is_uneven(symptom: Symptom) -> bool:
    """Whether batches lose time because rows are unevenly divided. In batches, stages follow each other: rows can be
    uneven at one component while another one holds all of them up."""
    return isinstance(symptom.evidence, LostTime) and symptom.evidence.cause in (DATA_SKEW, SOURCE_SKEW)


def _uneven(symptom: Symptom) -> float:
    uneven = symptom.evidence.find(UnevenEvidence)
    return sureness(uneven.largest_over_mean if uneven is not None else 1.0, _UNEVEN_RATIO, _MEAN_RATIO_WIDTH)


def _times_peers(symptom: Symptom, measured: SlowWorkers | RowsOverPeers | None) -> float:
    """How many times the value of its peers; the severity implies it if a plug-in's detector gives no figures."""
    return measured.times_peers if measured is not None else 1.0 / max(1.0 - symptom.severity, _SMALLEST_REST)


def _offered_per_s(pressure: Symptom, default: float) -> float:
    measured = pressure.evidence.find(PressureEvidence)
    return default if measured is None or measured.offered_per_s is None else measured.offered_per_s


def _works_off_backlog(pressure: Symptom) -> bool:
    """Whether the objective is above the arrival rate, so that the backlog is processed in time."""
    measured = pressure.evidence.find(PressureEvidence)
    return measured is not None and measured.behind_s is not None


def _detector(symptom: Symptom) -> str:
    gap = symptom.evidence.find(MissingMetric)
    return gap.detector if gap is not None else ""


def _held_up(view: View, name: str, here: dict[str, Symptom]) -> float:
    """Whether it holds its senders back although it is hardly busy: then it waits for an external system."""
    if PRESSURE not in here or view.micro_batch:
        return NO_SIGN
    busiest = view.column(name, "busiest_s", last=LEAST_OBSERVATIONS)
    span = view.flow("span_s", last=LEAST_OBSERVATIONS)
    measured = len(busiest) > 0 and bool(np.isfinite(busiest).all()) and bool((span > 0).all())
    if not measured or view.topology.downstream(name):
        return NO_SIGN
    return SHOWN if float(np.mean(busiest / span)) < _ALMOST_IDLE else NO_SIGN


def _short(view: View, load: Load | None, here: dict[str, Symptom]) -> float:
    """Whether the load would not fit even if every instance had the typical speed and an even share.

    Not if no number of instances would be enough, because something else takes the time.
    """
    limit = scaling_limit(view)
    if PRESSURE not in here or (limit is not None and limit.explained):
        return NO_SIGN
    if load is None or not (math.isfinite(load.even_per_s) and load.is_known):
        return NOT_MEASURED
    offered_per_s = _offered_per_s(here[PRESSURE], level(load.offered_per_s))
    arrives_per_s = level(load.offered_per_s) if not _works_off_backlog(here[PRESSURE]) else offered_per_s
    if limit is not None and not limit.can_make_up and limit.fits(arrives_per_s, load.target):
        return NO_SIGN
    # In a dataflow, uneven rows are detected one observation later than pressure.
    may_be_skewed = RATE_SKEW in here or (not view.micro_batch and len(view.window) <= LEAST_OBSERVATIONS)
    even = load.even_per_s / (1.0 if may_be_skewed else load.imbalance)
    if not (offered_per_s > 0 and even > 0):
        return NOT_MEASURED
    return sureness(math.log(offered_per_s / (even * load.target)), 0.0, _SHORTAGE_WIDTH)


# Under which name the time that a batch lost to a cause is kept.
_LOST_AS = {DATA_SKEW: UNEVEN_ROWS, HASH_IMBALANCE: UNEVEN_ROWS, SOURCE_SKEW: UNEVEN_ROWS}


def _with_loss(weighed: WeighedCauses, view: View, cause: str, name: str) -> WeighedCauses:
    """With the time that the latest batches lost to the cause, if it is known."""
    last = len(view.window.telling(LEAST_OBSERVATIONS)) or LEAST_OBSERVATIONS
    for series in time_losses(view):
        if series.cause == _LOST_AS.get(cause, cause) and series.component in ("", name):
            lost_s, batch_s = (median(each[-last:]) for each in (series.lost_s, series.seconds))
            return replace(weighed, lost_s=lost_s, batch_s=batch_s) if lost_s > 0 else weighed
    return weighed


def _weighed_causes(ranking: str, load: Load | None, key_share: float | None, key: str) -> WeighedCauses:
    if load is None:
        return WeighedCauses(ranking, largest_key_share=key_share, largest_key=key)
    return WeighedCauses(ranking, load.capacity_per_s, load.even_per_s, load.imbalance, key_share, key)


def _slo(view: View, violations: Sequence[Symptom]) -> Iterator[Diagnosis]:
    """If too little arrives, this explains a low throughput, but not a high latency."""
    objective_per_s = view.objective.throughput_per_s
    arrivals = view.flow("arrival_per_s", last=RECENT)
    arrival = float(np.nanmedian(arrivals)) if np.isfinite(arrivals).any() else math.nan
    is_starved = objective_per_s is not None and arrival < _ARRIVES_IN_FULL * objective_per_s
    excused_violations = tuple(s for s in violations if is_starved and _is_about_throughput(s))
    if objective_per_s is not None and excused_violations:
        yield Diagnosis(SOURCE_LIMITED, "", SHOWN, TooLittleArrives(arrival, objective_per_s), excused_violations)
    unmet = tuple(sorted((s for s in violations if s not in excused_violations), key=lambda s: -s.severity))
    if unmet:
        yield Diagnosis(SLO_UNMET, "", EFFECT_SHOWN, UnmetObjective(arrival, unmet[0].evidence), unmet)


def _is_about_throughput(symptom: Symptom) -> bool:
    missed_objective = symptom.evidence.find(ObjectiveMissed)
    return missed_objective is not None and missed_objective.metric == THROUGHPUT
