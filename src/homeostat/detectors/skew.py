"""Instances apart from their peers: in rows given, rows waiting, time per row. Robust: one idle one is no skew."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from homeostat.core.configuration import SPREAD, Knob
from homeostat.core.findings import PENDING_SKEW, RATE_SKEW, SPEED_SKEW, UNKNOWN, Symptom
from homeostat.core.observation import NAN, Array, Observation, TaskSample
from homeostat.core.stats import median, spread
from homeostat.core.view import View, Window
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import arrived_rows

_LEAST_ROWS = 1.0
_FEW = 8
Read = Callable[[str], Array]


def peers_ratio(values: Array, alike: int = 1) -> Array:
    """Each value over the median of the others (of all, where there are many).

    `alike` instances are known to share the same keys, so that the peers of the largest are all but so many.
    """
    count = len(values)
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return np.full(count, NAN)
    if alike > 1:
        reference = np.full(count, median(np.sort(values[finite])[: max(1, int(finite.sum()) - alike)]))
    elif finite.sum() > _FEW:
        reference = np.full(count, median(values[finite]))
    else:
        reference = np.full(count, NAN)
        for i in np.flatnonzero(finite):
            reference[i] = median(values[finite & (np.arange(count) != i)])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(reference > 0, values / reference, np.where(values > 0, np.inf, 1.0))
    return np.where(finite, ratio, NAN)


def outliers(ratio: Array, sensitivity: Sensitivity) -> NDArray[np.bool_]:
    """Far above the peers, both in their own spread and by a factor."""
    finite = ratio[np.isfinite(ratio)]
    if np.count_nonzero(~np.isnan(ratio)) < 2:
        return np.zeros(len(ratio), dtype=np.bool_)
    scale = max(0.1, spread(finite)) if len(finite) > _FEW else 0.1
    with np.errstate(invalid="ignore"):
        far: NDArray[np.bool_] = (ratio > 1.0 + sensitivity.outlier * scale) & (ratio >= sensitivity.ratio)
    return far


def typically(per_observation: Array, least: int) -> Array:
    """The typical value of each instance over observations; NaN for one seen too seldom."""
    if per_observation.shape[0] == 0:
        return np.empty(0)
    finite = np.isfinite(per_observation)
    if finite.all():
        return np.asarray(np.median(per_observation, axis=0))
    seen = finite.sum(axis=0)
    typical = np.full(per_observation.shape[1], NAN)
    enough = seen >= min(least, per_observation.shape[0])
    if enough.any():
        typical[enough] = np.nanmedian(per_observation[:, enough], axis=0)
    return typical


@dataclass(frozen=True, slots=True)
class RateSkewDetector:
    """Some instances are given more rows than their peers (the paper's processing-rate skew)."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "rate-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        least = self.sensitivity.least
        yield from _apart(view, self, RATE_SKEW, "rows over peers", lambda c: arrived_rows(view.window, c, least))


@dataclass(frozen=True, slots=True)
class PendingSkewDetector:
    """More waits before some instances than before their peers; in a micro-batch, they finish later."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "pending-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        column = "finish_s" if view.micro_batch else "pending_rows"
        window = view.window.last(self.sensitivity.least)
        yield from _apart(view, self, PENDING_SKEW, "waiting over peers", lambda c: window.tasks(c, column))


def _apart(
    view: View, detector: RateSkewDetector | PendingSkewDetector, kind: str, label: str, read: Read
) -> Iterator[Symptom]:
    sensitivity = detector.sensitivity
    if len(view.window) <= sensitivity.least:
        return
    for component in view.topology.names:
        matrix = read(component)
        if matrix.shape[1] < 2:
            continue
        typical = typically(matrix, sensitivity.least)
        if not np.isfinite(typical).any():
            yield _unknown(detector.name, component, label)
        elif float(np.nanmax(typical, initial=0.0)) > 0:
            alike = int(view.configuration.get(Knob(SPREAD, component), 1))
            ratio = peers_ratio(typical, alike if alike < matrix.shape[1] else 1)
            yield from _symptom(kind, component, ratio, outliers(ratio, sensitivity), label, view)


@dataclass(frozen=True, slots=True)
class SpeedSkewDetector:
    """Some workers need longer for a row than others that do the same, or are lost."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "speed-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        window = view.window.last(self.sensitivity.least)
        latest = window.latest
        if latest is None or len(window) < self.sensitivity.least:
            return
        for component in view.topology.names:
            sample = latest.tasks.get(component)
            if sample is None:
                continue
            lost = _lost(sample.worker, latest.workers.alive)
            if lost.any():
                instances = tuple(int(i) for i in np.flatnonzero(lost))
                workers = view.workers_of(component, instances)
                yield Symptom(SPEED_SKEW, component, 1.0, {"lost workers": float(len(workers))}, instances, workers)
            elif sample.instances > 1 and not (np.isfinite(sample.rows) & np.isfinite(sample.run_s)).any():
                yield _unknown(self.name, component, "time per row")
            else:
                yield from self._slow(component, sample, window)

    def _slow(self, component: str, sample: TaskSample, window: Window) -> Iterator[Symptom]:
        """Workers that were apart in every one of the last observations."""
        ids = window.observations[-1].workers.ids
        ratios = [
            peers_ratio(_seconds_per_row(o, component, len(ids))) for o in window.observations if o.workers.ids == ids
        ]
        if len(ratios) < self.sensitivity.least:
            return
        ratio = np.min(ratios, axis=0)
        slow = np.flatnonzero(outliers(ratio, self.sensitivity))
        if len(slow):
            instances = tuple(int(i) for i in np.flatnonzero(np.isin(sample.worker, slow)))
            workers = tuple(ids[int(w)] for w in slow)
            worst = float(ratio[slow].max())
            evidence: dict[str, float | str] = {
                "time per row over peers": worst,
                "workers": ", ".join(workers[:5]),
            }
            yield Symptom(SPEED_SKEW, component, 1.0 - 1.0 / worst, evidence, instances, workers)


def _lost(worker: NDArray[np.int64], alive: NDArray[np.bool_]) -> NDArray[np.bool_]:
    if alive.all():
        return np.zeros(len(worker), dtype=np.bool_)
    known = worker >= 0
    return known & ~alive[np.where(known, worker, 0)]


def _seconds_per_row(observation: Observation, component: str, workers: int) -> Array:
    """Useful time per row for each worker."""
    sample = observation.tasks.get(component)
    if sample is None:
        return np.full(workers, NAN)
    good = (sample.worker >= 0) & np.isfinite(sample.rows) & np.isfinite(sample.run_s)
    rows = np.bincount(sample.worker[good], weights=sample.rows[good], minlength=workers)
    seconds = np.bincount(sample.worker[good], weights=sample.run_s[good], minlength=workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_row: Array = np.where((rows >= _LEAST_ROWS) & (seconds > 0), seconds / rows, NAN)
    return per_row


def _unknown(detector: str, component: str, missing: str) -> Symptom:
    return Symptom(UNKNOWN, component, evidence={"detector": detector, "missing": missing})


def _symptom(
    kind: str, component: str, ratio: Array, far: NDArray[np.bool_], label: str, view: View
) -> Iterator[Symptom]:
    if far.any():
        instances = tuple(int(i) for i in np.flatnonzero(far))
        worst = float(np.nanmax(np.where(np.isfinite(ratio), ratio, 100.0)[far]))
        evidence = {label: worst, "instances": float(len(instances))}
        yield Symptom(kind, component, 1.0 - 1.0 / worst, evidence, instances, view.workers_of(component, instances))
