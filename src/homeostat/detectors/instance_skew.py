"""Detects instances that differ from their peers: in rows, in rows that wait, or in time per row.

The statistics are robust, so that one idle instance is not a skew.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from itertools import takewhile
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray

from homeostat.core.batch_intervals import LATE_INTERVALS
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import MEDIAN_ERROR
from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array, IntArray, Observation, TaskSample
from homeostat.core.stats import median, spread
from homeostat.core.symptoms import PENDING_SKEW, RATE_SKEW, SPEED_SKEW, UNKNOWN
from homeostat.core.view import View, Window
from homeostat.core.wording import number
from homeostat.core.worker_pace import (
    FEW,
    NOTICED,
    Tasks,
    executors_of,
    is_slow_by_partition,
    pace_apart_from_crowded_tasks,
    peers_ratio,
    row_time_ratio,
)
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import arrived_rows, level
from homeostat.models.partition_sizes import ROWS_THAT_TELL

# Tasks that an executor must have had: with fewer, one straggler decides. A choice.
_LEAST_TASKS = 3
# How many batches are checked for slow executors: more are surer, fewer are newer. A choice.
_LOOK_BACK = 6
# From this many times the time of the peers, one batch fewer is enough, because it cannot be noise. A choice.
_UNMISTAKABLE = 2.5
# The smallest spread of ratios to the peers that is assumed. With few peers the spread cannot be measured; a smaller
# one would call them apart by chance. A choice.
_LEAST_SPREAD = 0.1
# Used instead of an infinite ratio, if all peers have nothing: only the order of severities depends on it. A choice.
_LARGEST_RATIO = 100.0
# How many workers a sentence names, to stay readable. The symptom has all of them. A choice.
_WORKERS_NAMED = 5
Read = Callable[[str], Array]


@dataclass(frozen=True, slots=True)
class RowsOverPeers(Evidence):
    headline: ClassVar[str] = "some instances of {where} get more rows than others"
    metric: ClassVar[str] = "rows over peers"
    times_peers: float
    instances: float

    def summary(self) -> str:
        return f"{number(self.times_peers)} × the rows of their peers"


@dataclass(frozen=True, slots=True)
class WaitingOverPeers(Evidence):
    headline: ClassVar[str] = "some instances of {where} finish later than others"
    metric: ClassVar[str] = "waiting over peers"
    times_peers: float
    instances: float

    def summary(self) -> str:
        return f"{number(self.times_peers)} × the wait of their peers"


@dataclass(frozen=True, slots=True)
class SlowWorkers(Evidence):
    headline: ClassVar[str] = "some workers of {where} are slower than others"
    times_peers: float
    observations_in_a_row: float | None = None
    workers: str = ""
    capacity_without_it_per_s: float | None = None

    def summary(self) -> str:
        needs = f"{number(self.times_peers)} × the time of their peers per row"
        return f"{self.workers} need {needs}" if self.workers else needs


@dataclass(frozen=True, slots=True)
class LostWorkers(Evidence):
    headline: ClassVar[str] = "{where} has lost workers"
    lost_workers: float


def outliers(ratio: Array, sensitivity: Sensitivity) -> NDArray[np.bool_]:
    """Return which ratios are far above those of the peers, both in their spread and by a factor."""
    far: NDArray[np.bool_] = ratio >= sensitivity.ratio
    if not far.any():
        return far
    finite = ratio[np.isfinite(ratio)]
    if np.count_nonzero(~np.isnan(ratio)) < 2:
        return np.zeros(len(ratio), dtype=np.bool_)
    scale = max(_LEAST_SPREAD, spread(finite)) if len(finite) > FEW else _LEAST_SPREAD
    return far & (ratio > 1.0 + sensitivity.outlier * scale)


def typically(per_observation: Array, least: int) -> Array:
    """Return the median of each instance over observations; NaN for one that was measured too seldom."""
    if per_observation.shape[0] == 0:
        return np.empty(0)
    finite = np.isfinite(per_observation)
    if finite.all():
        return _medians(per_observation)
    counts = finite.sum(axis=0)
    typical = np.full(per_observation.shape[1], NAN)
    enough = counts >= min(least, per_observation.shape[0])
    if enough.any():
        typical[enough] = np.nanmedian(per_observation[:, enough], axis=0)
    return typical


def _medians(lines: Array) -> Array:
    """The median of each column. For few lines it is much faster than numpy's."""
    ordered = np.sort(lines, axis=0)
    middle = len(lines) // 2
    return np.asarray(ordered[middle] if len(lines) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle]))


@dataclass(frozen=True, slots=True)
class RateSkewDetector:
    """Reports instances that get more rows than their peers (the paper's processing-rate skew)."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "rate-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        count = len(view.window.telling(self.sensitivity.least))

        def rows(component: str) -> Array:
            return with_empty_partitions(view, component, arrived_rows(view.window, component, count))

        yield from _apart(view, self, RATE_SKEW, RowsOverPeers, rows)


def with_empty_partitions(view: View, component: str, rows: Array) -> Array:
    """Add a column of zeros for each partition of a source that got no rows and so has no task.

    Without them a source whose rows are all in one partition would look even.
    """
    source = view.topology[component]
    if source.kind != "source" or source.partitions is None or not view.micro_batch:
        return rows
    missing = int(view.configuration.get(source.partitions, 0)) - rows.shape[1]
    if missing <= 0 or not np.isfinite(rows).any() or np.nanmean(rows) < ROWS_THAT_TELL:
        return rows
    return np.pad(rows, ((0, 0), (0, missing)))


@dataclass(frozen=True, slots=True)
class PendingSkewDetector:
    """Reports instances with longer queues than their peers; in a micro-batch, instances that finish later.

    Instances that finish later must cost the batch time that is worth naming.
    """

    sensitivity: Sensitivity = Sensitivity()
    # The share of the trigger interval (of the batch, without one) by which the last instance must finish after the
    # typical one. A smaller one would report the noise of short tasks. A choice: half of what lost time must be.
    least_share: float = 0.05
    name: str = "pending-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        column = "finish_s" if view.micro_batch else "pending_rows"
        window = view.window.telling(self.sensitivity.least)
        for symptom in _apart(view, self, PENDING_SKEW, WaitingOverPeers, lambda c: window.tasks(c, column)):
            if (
                symptom.kind != PENDING_SKEW
                or not view.micro_batch
                or self._costs_time(view, window, symptom.component)
            ):
                yield symptom

    def _costs_time(self, view: View, window: Window, component: str) -> bool:
        finish_s = typically(window.tasks(component, "finish_s"), self.sensitivity.least)
        known_s = finish_s[np.isfinite(finish_s)]
        later_s = float(known_s.max()) - median(known_s) if len(known_s) else 0.0
        trigger_s, batch_s = (level(view.flow(name, last=len(window))) for name in ("trigger_s", "seconds"))
        return not later_s < self.least_share * (trigger_s if trigger_s > 0 else batch_s)


def _apart(
    view: View,
    detector: RateSkewDetector | PendingSkewDetector,
    kind: str,
    evidence: type[RowsOverPeers] | type[WaitingOverPeers],
    read: Read,
) -> Iterator[Symptom]:
    sensitivity = detector.sensitivity
    # Arrivals at a queue are computed from its growth, which takes one more observation.
    if not view.window.telling(sensitivity.least) or (not view.micro_batch and len(view.window) <= sensitivity.least):
        return
    for component in view.topology.names:
        matrix = read(component)
        if matrix.shape[1] < 2:
            continue
        typical = typically(matrix, sensitivity.least)
        if not np.isfinite(typical).any():
            yield _unknown_symptom(detector.name, component, evidence.metric)
        elif (typical > 0).any():
            alike = view.spread(component)
            ratio = peers_ratio(typical, alike if alike < matrix.shape[1] else 1)
            yield from _symptom(kind, component, ratio, outliers(ratio, sensitivity), evidence, view)


@dataclass(frozen=True, slots=True)
class SpeedSkewDetector:
    """Reports workers that need longer for a row than others with the same work, and workers that are lost.

    An executor of a micro-batch is slow in all stages, so its tasks count together and it is reported once.
    """

    sensitivity: Sensitivity = Sensitivity()
    name: str = "speed-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        window = view.window.last(self.sensitivity.least)
        latest = window.latest
        if latest is None or (len(window) < self.sensitivity.least - 1 and latest.intervals < LATE_INTERVALS):
            return
        anyone_lost = False
        for component in view.topology.names:
            sample = latest.tasks.get(component)
            if sample is None:
                continue
            is_lost = _is_lost(sample.worker, latest.workers.alive)
            if is_lost.any():
                anyone_lost = True
                instances = tuple(int(i) for i in np.flatnonzero(is_lost))
                workers = view.workers_of(component, instances)
                yield Symptom(SPEED_SKEW, component, 1.0, LostWorkers(float(len(workers))), instances, workers)
            elif sample.instances > 1 and not (np.isfinite(sample.rows) & np.isfinite(sample.run_s)).any():
                yield _unknown_symptom(self.name, component, "time per row")
            elif not view.micro_batch:
                yield from self._slow(component, sample, window)
        if view.micro_batch and not anyone_lost:
            window = _of_these_workers(view.window.last(_LOOK_BACK))
            yield from self._slow_executors(view.topology.names, window, view.latest)

    def _slow(self, component: str, sample: TaskSample, window: Window) -> Iterator[Symptom]:
        """Report workers that were slower than their peers in every one of the last observations."""
        ids = window.observations[-1].workers.ids
        ratios = [row_time_ratio(o, component) for o in window.observations if o.workers.ids == ids]
        if len(ratios) < self.sensitivity.least:
            return
        ratio = np.min(ratios, axis=0)
        slow = np.flatnonzero(outliers(ratio, self.sensitivity))
        if len(slow):
            yield _slow_symptom(component, sample, ids, slow, float(ratio[slow].max()), len(ratios))

    def _slow_executors(self, components: tuple[str, ...], window: Window, any_window: Window) -> Iterator[Symptom]:
        """Report executors whose typical task was slower in each of the last batches, by more than chance explains.

        If an executor is slower by a factor that cannot be chance, one batch fewer is enough. One late batch is enough
        if the executor was as fast as others before, because then it is not cold.
        """
        latest = window.observations[-1]
        executors = [executors_of(o, components) for o in window.observations]
        batches, typical = [each.tasks for each in executors], np.array([each.typical for each in executors])
        ratios = np.array([each.ratio for each in executors])
        lasting = _lasting(ratios > NOTICED)
        slow, worst = [], 1.0
        is_late = latest.intervals >= LATE_INTERVALS
        turned = _turned(latest, components, any_window) if is_late else np.zeros(len(lasting), dtype=np.bool_)
        for worker in np.flatnonzero((lasting >= self.sensitivity.least - 1) | (turned & (lasting > 0))):
            recent = ratios[-lasting[worker] :]
            overall = np.median(recent, axis=0)
            sure = lasting[worker] >= self.sensitivity.least or recent[:, worker].min() >= _UNMISTAKABLE
            far = bool(outliers(overall, self.sensitivity)[worker])
            if (
                sure
                and far
                and self._beyond_chance(worker, overall[worker], batches, typical, lasting[worker])
                and not _is_slow_by_partition(int(worker), window.observations[-lasting[worker] :], components)
            ):
                slow.append(worker)
                worst = max(worst, float(overall[worker]))
        if slow:
            component = _costliest(latest, components, np.array(slow))
            yield _slow_symptom(
                component, latest.tasks[component], latest.workers.ids, np.array(slow), worst, int(lasting[slow].max())
            )

    def _beyond_chance(
        self, executor: np.intp, ratio: float, batches: Sequence[Tasks], typical: Array, last: int
    ) -> bool:
        """Whether its typical task differs from those of its peers by more than tasks vary."""
        recent = list(zip(batches, typical, strict=True))[-last:]
        tasks = sum(int((batch.worker == executor).sum()) for batch, _ in recent)
        varying = spread(np.concatenate([batch.slowness / line[batch.worker] - 1.0 for batch, line in recent]))
        error = MEDIAN_ERROR * varying / math.sqrt(max(tasks, 1))
        return tasks >= _LEAST_TASKS and ratio > 1.0 + self.sensitivity.outlier * error


def _is_slow_by_partition(worker: int, batches: Sequence[Observation], components: tuple[str, ...]) -> bool:
    """Whether it is as fast as others in all tasks but those with far more rows, or but those of the partitions of one
    stage that it always runs: then the partition is slow, not it."""
    paces = np.array([pace_apart_from_crowded_tasks(batch, components)[worker] for batch in batches])
    known_paces = paces[np.isfinite(paces)]
    crowded = bool(len(known_paces)) and median(known_paces) <= NOTICED
    return crowded or is_slow_by_partition(worker, batches, components)


def _turned(latest: Observation, components: tuple[str, ...], window: Window) -> NDArray[np.bool_]:
    """Which workers were as fast as others before, in any configuration."""
    fast_ids: set[str] = set()
    for o in window.observations:
        if o.at_s < latest.at_s:
            ratio = executors_of(o, components).ratio
            fast_ids |= {id for id, each in zip(o.workers.ids, ratio.tolist(), strict=True) if each <= NOTICED}
    return np.array([id in fast_ids for id in latest.workers.ids], dtype=np.bool_)


def _lasting(apart: NDArray[np.bool_]) -> IntArray:
    """For each worker, count the consecutive latest batches in which it was an outlier."""
    lasting: IntArray = np.cumprod(apart[::-1], axis=0, dtype=np.int64).sum(axis=0)
    return lasting


def _slow_symptom(
    component: str, sample: TaskSample, ids: Sequence[str], slow: NDArray[np.intp], worst: float, lasting: int
) -> Symptom:
    instances = tuple(int(i) for i in np.flatnonzero(np.isin(sample.worker, slow)))
    workers = tuple(ids[int(w)] for w in slow)
    evidence = SlowWorkers(worst, float(lasting), ", ".join(workers[:_WORKERS_NAMED]))
    return Symptom(SPEED_SKEW, component, 1.0 - 1.0 / worst, evidence, instances, workers)


def _of_these_workers(window: Window) -> Window:
    """Return the observations since the workers last changed."""
    ids = window.observations[-1].workers.ids
    same = takewhile(lambda o: o.workers.ids == ids, reversed(window.observations))
    return Window(tuple(same)[::-1])


def _costliest(observation: Observation, components: Sequence[str], slow: NDArray[np.intp]) -> str:
    """Return the component on which these workers spent most of their time."""
    spent_s = {
        name: float(np.nansum(sample.run_s[np.isin(sample.worker, slow)]))
        for name in components
        if (sample := observation.tasks.get(name)) is not None
    }
    return max(spent_s, key=lambda name: spent_s[name])


def _is_lost(worker: NDArray[np.int64], alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if alive.all():
        return np.zeros(len(worker), dtype=np.bool_)
    has_worker = worker >= 0
    return has_worker & ~alive[np.where(has_worker, worker, 0)]


def _unknown_symptom(detector: str, component: str, missing: str) -> Symptom:
    return Symptom(UNKNOWN, component, evidence=MissingMetric(detector, missing))


def _symptom(
    kind: str,
    component: str,
    ratio: Array,
    far: NDArray[np.bool_],
    evidence: type[RowsOverPeers] | type[WaitingOverPeers],
    view: View,
) -> Iterator[Symptom]:
    if far.any():
        instances = tuple(int(i) for i in np.flatnonzero(far))
        worst = float(np.nanmax(np.where(np.isfinite(ratio), ratio, _LARGEST_RATIO)[far]))
        workers = view.workers_of(component, instances)
        apart = evidence(worst, float(len(instances)))
        yield Symptom(kind, component, 1.0 - 1.0 / worst, apart, instances, workers)
