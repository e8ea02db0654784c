"""Instances apart from their peers: in rows given, rows waiting, time per row. Robust: one idle one is no skew."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from homeostat.core.findings import PENDING_SKEW, RATE_SKEW, SPEED_SKEW, Symptom
from homeostat.core.observation import NAN, Array
from homeostat.core.view import View
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import RECENT

_LEAST_ROWS = 1.0
_FEW = 8


def peers_ratio(values: Array) -> Array:
    """Each value over the median of the others (of all, where there are many)."""
    count = len(values)
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return np.full(count, NAN)
    if count > _FEW:
        reference = np.full(count, float(np.median(values[finite])))
    else:
        others = [values[finite & (np.arange(count) != i)] for i in range(count)]
        reference = np.array([float(np.median(other)) if len(other) else NAN for other in others])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(reference > 0, values / reference, np.where(values > 0, np.inf, 1.0))
    return np.where(finite, ratio, NAN)


def outliers(ratio: Array, sensitivity: Sensitivity) -> NDArray[np.bool_]:
    """Far above the peers, both in their own spread and by a factor."""
    finite = ratio[np.isfinite(ratio)]
    if len(finite) < 2:
        return np.zeros(len(ratio), dtype=np.bool_)
    spread = 0.1
    if len(finite) > _FEW:
        spread = max(spread, 1.4826 * float(np.median(np.abs(finite - np.median(finite)))))
    with np.errstate(invalid="ignore"):
        far: NDArray[np.bool_] = (ratio > 1.0 + sensitivity.outlier * spread) & (ratio >= sensitivity.ratio)
    return far


def median_ratio(per_observation: Array, least: int) -> Array:
    """Typical ratio over observations; NaN for instances seen too seldom."""
    if per_observation.shape[0] == 0:
        return np.empty(0)
    seen = np.isfinite(per_observation).sum(axis=0)
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
        yield from _columns(view, self.sensitivity, "rows", RATE_SKEW, "rows over peers")


@dataclass(frozen=True, slots=True)
class PendingSkewDetector:
    """More waits before some instances than before their peers; in a micro-batch, they finish later."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "pending-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        column = "finish_s" if view.micro_batch else "pending_rows"
        yield from _columns(view, self.sensitivity, column, PENDING_SKEW, "waiting over peers")


def _columns(view: View, sensitivity: Sensitivity, column: str, kind: str, label: str) -> Iterator[Symptom]:
    window = view.window.last(RECENT)
    if len(window) < sensitivity.least:
        return
    for component in view.topology.names:
        matrix = window.tasks(component, column)
        if matrix.shape[1] < 2 or not np.isfinite(matrix).any():
            continue
        typical = median_ratio(matrix, sensitivity.least)
        ratio = peers_ratio(typical)
        if column != "finish_s" and not float(np.nanmax(typical, initial=0.0)) >= _LEAST_ROWS:
            continue
        yield from _symptom(kind, component, ratio, outliers(ratio, sensitivity), label, view)


@dataclass(frozen=True, slots=True)
class SpeedSkewDetector:
    """Some workers need longer for a row than others that do the same, or are lost."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "speed-skew"

    def detect(self, view: View) -> Iterator[Symptom]:
        window = view.window.last(RECENT)
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
                continue
            seconds = _seconds_per_row(view, component)
            ratio = peers_ratio(seconds)
            slow = outliers(ratio, self.sensitivity)
            if slow.any():
                instances = tuple(int(i) for i in np.flatnonzero(np.isin(sample.worker, np.flatnonzero(slow))))
                workers = tuple(latest.workers.ids[int(w)] for w in np.flatnonzero(slow))
                worst = float(np.nanmax(ratio))
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


def _seconds_per_row(view: View, component: str) -> Array:
    """Useful time per row for each worker of the latest observation, over the recent ones with the same workers."""
    window = view.window.last(RECENT)
    latest = window.observations[-1]
    count = len(latest.workers.ids)
    rows, seconds = np.zeros(count), np.zeros(count)
    for observation in window.observations:
        sample = observation.tasks.get(component)
        if sample is None or observation.workers.ids != latest.workers.ids:
            continue
        good = (sample.worker >= 0) & np.isfinite(sample.rows) & np.isfinite(sample.run_s)
        rows += np.bincount(sample.worker[good], weights=sample.rows[good], minlength=count)
        seconds += np.bincount(sample.worker[good], weights=sample.run_s[good], minlength=count)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_row: Array = np.where((rows >= _LEAST_ROWS) & (seconds > 0), seconds / rows, NAN)
    return per_row


def _symptom(
    kind: str, component: str, ratio: Array, far: NDArray[np.bool_], label: str, view: View
) -> Iterator[Symptom]:
    if far.any():
        instances = tuple(int(i) for i in np.flatnonzero(far))
        worst = float(np.nanmax(np.where(np.isfinite(ratio), ratio, 100.0)[far]))
        evidence = {label: worst, "instances": float(len(instances))}
        yield Symptom(kind, component, 1.0 - 1.0 / worst, evidence, instances, view.workers_of(component, instances))
