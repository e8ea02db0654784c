"""The paper's detectors: fixed thresholds on means over the window, as Dhalion describes and Heron ships them.

A micro-batch engine has neither queues nor back-pressure inside. On it, `batch_pressure` takes the place of the
back-pressure of the whole query. The stage that takes longest takes the place of the component that causes it, and the
longest task time over the stage's median that of the pending rows of an instance.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_KNOWN
from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median
from homeostat.core.symptoms import GROWING_BACKLOG, IDLE, PENDING_SKEW, PRESSURE, RATE_SKEW, SLO_VIOLATION, UNKNOWN
from homeostat.core.topology import Topology
from homeostat.core.view import View, Window
from homeostat.detectors.sensitivity import NOISE_FILTER, SLO_TOLERANCE
from homeostat.detectors.window_means import (
    batch_pressure,
    instance_means,
    longest_stage,
    missing_metric,
    observed_s,
    pressure_shares,
    window_digests,
)

# How long the present configuration must have been observed: 0.8 of the window of 120 s. Ours; policies set it.
_LEAST_OBSERVED_S = 96.0
# Largest over smallest queue of the instances from which they are skewed: lower finds more skew, and more noise. Heron.
QUEUE_SKEW = 20.0
# Largest over smallest rate of the instances from which they are skewed, likewise. Heron.
RATE_SKEW_RATIO = 1.5
# A queue that grows by more rows per second than this is growing: lower reports noise. Heron.
GROWING_QUEUE_PER_S = 10.0
# A component whose queue holds no more than this many seconds of work is idle: higher shrinks sooner. Ours: the paper
# says about 0.
IDLE_PENDING_S = 0.7
# Points that a regression needs. Heron.
_LEAST_POINTS = 3
# A longest queue of less than one row is empty, however short the others are. Ours.
_LEAST_QUEUE_ROWS = 1.0
# Instances with more than this share of the longest queue are named with it. Ours.
_LONG_QUEUE_SHARE = 0.5
# Instances with more rows than this share of the way from the fewest to the most are named as busy. Ours.
_BUSY_SHARE = 0.5
# A queue that grows this many times faster than the limit has the highest severity. Ours; it only orders symptoms.
_WORST_GROWTH = 100


@dataclass(frozen=True, slots=True)
class BackPressure(Evidence):
    """The share of the time in which senders are held back: by the worst instance, and summed over all of them."""

    headline: ClassVar[str] = "{where} is overloaded"
    pressure: float
    sum_over_instances: float
    instances: float

    def summary(self) -> str:
        return f"its senders are held back {self.pressure:.0%} of the time"


@dataclass(frozen=True, slots=True)
class QueueSkew(Evidence):
    headline: ClassVar[str] = "the queues of {where} are uneven"
    most_pending_rows: float
    least_pending_rows: float
    factor_allowed: float


@dataclass(frozen=True, slots=True)
class TaskSkew(Evidence):
    headline: ClassVar[str] = "some tasks of {where} take longer than others"
    longest_over_median: float
    factor_allowed: float


@dataclass(frozen=True, slots=True)
class RowSkew(Evidence):
    headline: ClassVar[str] = "some instances of {where} process more rows than others"
    most_rows: float
    fewest_rows: float
    factor_allowed: float


@dataclass(frozen=True, slots=True)
class QueueGrowth(Evidence):
    headline: ClassVar[str] = "a queue of {where} grows"
    growth_per_s: float
    allowed_per_s: float


@dataclass(frozen=True, slots=True)
class LittlePending(Evidence):
    headline: ClassVar[str] = "almost no rows wait for {where}"
    pending_s: float
    allowed_s: float


@dataclass(frozen=True, slots=True)
class ThroughputMissed(Evidence):
    headline: ClassVar[str] = "the throughput objective is not met"
    objective_per_s: float
    observed_per_s: float
    arrival_per_s: float


@dataclass(frozen=True, slots=True)
class PressureDetector:
    """Reports components that hold their senders back for a share of the time. The worst instance counts."""

    noise_filter: float = NOISE_FILTER
    least_s: float = _LEAST_OBSERVED_S
    name: str = "pressure"

    def detect(self, view: View) -> Iterator[Symptom]:
        if observed_s(view) < self.least_s:
            return
        if view.micro_batch:
            yield from self._of_query(view)
            return
        for component in view.topology.operators:
            shares = pressure_shares(view.window, component.name)
            finite = np.isfinite(shares)
            holding_back = np.flatnonzero(np.nan_to_num(shares) > self.noise_filter)
            if holding_back.size:
                instances = tuple(int(i) for i in holding_back)
                pressure = float(np.nanmax(shares))
                evidence = BackPressure(pressure, float(np.nansum(shares)), float(holding_back.size))
                workers = view.workers_of(component.name, instances)
                yield Symptom(PRESSURE, component.name, pressure, evidence, instances, workers)
            elif not (finite.size and finite.all()):
                yield _unknown_symptom(self.name, component.name, "pressured_s")

    def _of_query(self, view: View) -> Iterator[Symptom]:
        digests = window_digests(view)
        pressure, stage = batch_pressure(digests), longest_stage(digests)
        if not math.isfinite(pressure) or not stage:
            yield _unknown_symptom(self.name, stage, "arrival, rows or seconds of a batch")
        elif pressure > self.noise_filter:
            yield Symptom(PRESSURE, stage, pressure, BackPressure(pressure, pressure, 1.0))


@dataclass(frozen=True, slots=True)
class PendingSkewDetector:
    """Heron's queue skew, max > `queue_skew` · min; on micro-batches the longest task > `batch_skew` · the median."""

    queue_skew: float = QUEUE_SKEW
    batch_skew: float = RATE_SKEW_RATIO
    least_s: float = _LEAST_OBSERVED_S
    name: str = "pending-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        if observed_s(view) < self.least_s:
            return
        for component in view.topology.operators:
            if view.micro_batch:
                yield from self._of_tasks(view, component.name)
            else:
                yield from self._of_queues(view, component.name)

    def _of_queues(self, view: View, component: str) -> Iterator[Symptom]:
        pending = instance_means(view.window, component, "pending_rows")
        if pending.size < 2:
            return
        if not np.isfinite(pending).all():
            yield _unknown_symptom(self.name, component, "pending_rows")
            return
        most, least = float(pending.max()), float(pending.min())
        if most >= _LEAST_QUEUE_ROWS and most > self.queue_skew * least:
            long = tuple(int(i) for i in np.flatnonzero(pending > most * _LONG_QUEUE_SHARE))
            evidence = QueueSkew(most, least, self.queue_skew)
            yield Symptom(PENDING_SKEW, component, 1.0 - least / most, evidence, long, view.workers_of(component, long))

    def _of_tasks(self, view: View, component: str) -> Iterator[Symptom]:
        seconds = view.window.tasks(component, "run_s")
        if seconds.shape[1] < 2:
            return
        ratios = _over_median(seconds)
        measured = ratios[np.isfinite(ratios).all(axis=1)]
        if len(measured) < LEAST_KNOWN * len(ratios):
            yield _unknown_symptom(self.name, component, "run_s")
            return
        worst = float(measured.max(axis=1).mean())
        if worst > self.batch_skew:
            late = tuple(int(i) for i in np.flatnonzero(np.nan_to_num(ratios[-1]) > self.batch_skew))
            evidence = TaskSkew(worst, self.batch_skew)
            yield Symptom(PENDING_SKEW, component, 1.0 - 1.0 / worst, evidence, late, view.workers_of(component, late))


@dataclass(frozen=True, slots=True)
class RateSkewDetector:
    """Reports instances that process more than `rate_skew` times the rows of others."""

    rate_skew: float = RATE_SKEW_RATIO
    least_s: float = _LEAST_OBSERVED_S
    name: str = "rate-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        if observed_s(view) < self.least_s:
            return
        for component in (c.name for c in view.topology.operators):
            rows = instance_means(view.window, component, "rows")
            if rows.size < 2:
                continue
            if not np.isfinite(rows).all():
                yield _unknown_symptom(self.name, component, "rows")
                continue
            most, least = float(rows.max()), float(rows.min())
            if most > self.rate_skew * least:
                busy = tuple(int(i) for i in np.flatnonzero(rows > (most + least) * _BUSY_SHARE))
                evidence = RowSkew(most, least, self.rate_skew)
                workers = view.workers_of(component, busy)
                yield Symptom(RATE_SKEW, component, 1.0 - least / most, evidence, busy, workers)


@dataclass(frozen=True, slots=True)
class GrowingQueueDetector:
    """Heron's: reports a queue whose regression slope, over at least three points, is above a limit."""

    growing_queue_per_s: float = GROWING_QUEUE_PER_S
    least_s: float = _LEAST_OBSERVED_S
    name: str = "growing-queue"

    def detect(self, view: View) -> Iterator[Symptom]:
        if observed_s(view) < self.least_s:
            return
        if view.micro_batch:
            digests = window_digests(view)
            pending = np.array([[d.pending_rows] for d in digests]).reshape(-1, 1)
            yield from self._judge("", np.array([d.at_s for d in digests]), pending)
            return
        at_s = np.array([o.at_s for o in view.window.observations])
        for component in view.topology.operators:
            yield from self._judge(component.name, at_s, view.window.tasks(component.name, "pending_rows"))

    def _judge(self, component: str, at_s: Array, pending: Array) -> Iterator[Symptom]:
        whole = pending[:, np.isfinite(pending).all(axis=0)]
        if len(at_s) < _LEAST_POINTS:
            return
        if not whole.shape[1]:
            yield _unknown_symptom(self.name, component, "pending_rows")
            return
        deviations_s = at_s - at_s.mean()
        slopes = deviations_s @ whole / float(deviations_s @ deviations_s)
        steepest = float(slopes.max())
        if steepest > self.growing_queue_per_s:
            evidence = QueueGrowth(steepest, self.growing_queue_per_s)
            yield Symptom(
                GROWING_BACKLOG, component, min(1.0, steepest / (_WORST_GROWTH * self.growing_queue_per_s)), evidence
            )


@dataclass(frozen=True, slots=True)
class IdleDetector:
    """Reports components with hardly anything pending and no pressure there or downstream, from complete data only.

    Pending is counted in seconds of one instance's work; on micro-batches it is the share of the trigger that a batch
    takes.
    """

    idle_pending_s: float = IDLE_PENDING_S
    noise_filter: float = NOISE_FILTER
    least_s: float = _LEAST_OBSERVED_S
    name: str = "idle"

    def detect(self, view: View) -> Iterator[Symptom]:
        if observed_s(view) < self.least_s:
            return
        missing = missing_metric(view, self.least_s)
        if missing:
            yield _unknown_symptom(self.name, "", missing)
        elif view.micro_batch:
            yield from self._batches(view)
        else:
            for component in view.topology.operators:
                below = _reachable(view.topology, component.name)
                pressure = max(float(pressure_shares(view.window, name).max()) for name in below)
                if pressure <= self.noise_filter:
                    yield from self._judge(view, component.name, _pending_s(view.window, component.name))

    def _batches(self, view: View) -> Iterator[Symptom]:
        digests = window_digests(view)
        stage = longest_stage(digests)
        if stage and batch_pressure(digests) <= self.noise_filter:
            shares = [d.seconds / d.trigger_s if d.trigger_s > 0 else math.inf for d in digests]
            yield from self._judge(view, stage, float(np.mean(shares)))

    def _judge(self, view: View, component: str, pending_s: float) -> Iterator[Symptom]:
        knob = view.topology[component].scaled_by
        least = view.spec(knob).minimum
        if pending_s <= self.idle_pending_s and view.configuration.get(knob, least) > least:
            evidence = LittlePending(pending_s, self.idle_pending_s)
            yield Symptom(IDLE, component, 1.0 - pending_s, evidence)


@dataclass(frozen=True, slots=True)
class SloDetector:
    """Reports that fewer rows are processed than the throughput objective requires."""

    tolerance: float = SLO_TOLERANCE
    least_s: float = _LEAST_OBSERVED_S
    name: str = "slo-violation"

    def detect(self, view: View) -> Iterator[Symptom]:
        objective_per_s = view.objective.throughput_per_s
        if objective_per_s is None or observed_s(view) < self.least_s:
            return
        digests = [d for d in window_digests(view) if math.isfinite(d.rows)]
        seconds = sum(d.span_s for d in digests)
        if seconds <= 0:
            yield _unknown_symptom(self.name, "", "rows of the sources")
            return
        rows_per_s = sum(d.rows for d in digests) / seconds
        if rows_per_s < objective_per_s * (1.0 - self.tolerance):
            arrivals = [d.arrival_per_s for d in digests if math.isfinite(d.arrival_per_s)]
            evidence = ThroughputMissed(objective_per_s, rows_per_s, float(np.mean(arrivals)) if arrivals else NAN)
            yield Symptom(SLO_VIOLATION, "", 1.0 - rows_per_s / objective_per_s, evidence)


def _over_median(seconds: Array) -> Array:
    """Return the time of each task over the median of its batch; NaN for batches in which a time is unknown."""
    ratios = np.full(seconds.shape, NAN)
    for number, line in enumerate(seconds):
        middle = median(line) if np.isfinite(line).all() else 0.0
        if middle > 0:
            ratios[number] = line / middle
    return ratios


def _pending_s(window: Window, component: str) -> float:
    rows, run_s = window.tasks(component, "rows").sum(), window.tasks(component, "run_s").sum()
    pending = float(window.tasks(component, "pending_rows").mean())
    if run_s > 0 and rows > 0:
        return pending * float(run_s / rows)
    return 0.0 if pending == 0 else math.inf


def _reachable(topology: Topology, name: str) -> set[str]:
    """Return a component and everything downstream of it."""
    names = {name}
    for component in topology:
        if names.intersection(component.inputs):
            names.add(component.name)
    return names


def _unknown_symptom(detector: str, component: str, missing: str) -> Symptom:
    return Symptom(UNKNOWN, component, evidence=MissingMetric(detector, missing))
