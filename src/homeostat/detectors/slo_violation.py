"""The objective is not met, and not just for a moment."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array
from homeostat.core.symptoms import SLO_VIOLATION, UNKNOWN
from homeostat.core.view import View
from homeostat.core.wording import span, whole
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.noise import cusum, fit, whitened

_MOST_WAIT = 0.95
THROUGHPUT, LAG, LATENCY = "throughput", "lag_s", "latency_p95_s"


@dataclass(frozen=True, slots=True)
class ObjectiveMissed(Evidence):
    """`metric` is THROUGHPUT, LAG or LATENCY."""

    headline: ClassVar[str] = "the objective is not met"
    metric: str
    objective: float
    measured: float

    def summary(self) -> str:
        if self.metric == THROUGHPUT:
            return f"{whole(self.measured)} rows/s are processed, {whole(self.objective)} are asked for"
        what = "lag" if self.metric == LAG else "p95 latency"
        return f"the {what} is {span(self.measured)}, at most {span(self.objective)} is asked for"


@dataclass(frozen=True, slots=True)
class SloDetector:
    """Throughput below, or lag or latency above, what was asked for; `tolerance` is the share that is let pass."""

    sensitivity: Sensitivity = Sensitivity()
    tolerance: float = 0.02
    name: str = "slo-violation"

    def detect(self, view: View) -> Iterator[Symptom]:
        wanted, lag_s = view.objective.throughput_per_s, view.objective.lag_s
        if wanted is not None:
            rates = np.array([d.rows / d.span_s if d.span_s > 0 else math.nan for d in view.current])
            yield from self._judge(wanted / np.where(rates > 0, rates, 1e-9), np.isfinite(rates), THROUGHPUT, wanted)
        if lag_s is not None:
            lags = np.array([lag_of(d.pending_rows, d.arrival_per_s) for d in view.current])
            yield from self._judge(np.where(lags > 0, lags, 1e-9) / lag_s, np.isfinite(lags), LAG, lag_s)
        latency_s = view.objective.latency_p95_s
        if latency_s is not None:
            took_s = np.array([latency_p95_s(d) if view.micro_batch else NAN for d in view.current])
            yield from self._judge(took_s / latency_s, np.isfinite(took_s), LATENCY, latency_s)

    def _judge(self, excess: Array, known: Array, what: str, wanted: float) -> Iterator[Symptom]:
        if len(excess) < self.sensitivity.least:
            return
        if not known[-LEAST_OBSERVATIONS:].any():
            yield Symptom(UNKNOWN, evidence=MissingMetric(self.name, what))
            return
        logs = np.log(excess[known.astype(bool)]) - self.tolerance
        sums = cusum(whitened(logs, fit(logs), self.sensitivity.floor), 0.0)
        recent = float(np.median(logs[-LEAST_OBSERVATIONS:]))
        if sums[-1] >= self.sensitivity.alarm and recent > 0:
            ratio = math.exp(recent)
            got = wanted / ratio if what == THROUGHPUT else wanted * ratio
            yield Symptom(SLO_VIOLATION, "", 1.0 - 1.0 / ratio, ObjectiveMissed(what, wanted, got))


def latency_p95_s(digest: Digest) -> float:
    return latency_of(digest.seconds, digest.trigger_s, lag_of(digest.pending_rows, digest.arrival_per_s))


def latency_of(seconds: float, trigger_s: float, lag_s: float) -> float:
    """Of 95 % of the rows, from arrival to commit: up to a period until the batch begins, then its duration, and before
    both what waited longer than that; NaN where any of it is unknown."""
    period_s = max(trigger_s if math.isfinite(trigger_s) else 0.0, seconds)
    return _MOST_WAIT * period_s + seconds + max(0.0, lag_s - seconds)


def lag_of(pending_rows: float, arrival_per_s: float) -> float:
    """How long ago what is taken now arrived; unknown when rows wait and none arrive, or either is unknown."""
    if pending_rows == 0:
        return 0.0
    return pending_rows / arrival_per_s if arrival_per_s > 0 else NAN
