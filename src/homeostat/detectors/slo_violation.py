"""Detects that the objective is not met, and not just for a moment."""

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
from homeostat.core.wording import span, whole, whole_span
from homeostat.detectors.sensitivity import SLO_TOLERANCE, Sensitivity
from homeostat.models.noise import cusum, fit, whiten

# The objective is about 95 % of the rows. Rows arrive evenly within a period, so 95 % of them wait for at most this
# share of it. By definition.
_MOST_WAIT = 0.95
# Stands for a rate or a lag of zero, whose logarithm does not exist. A choice far below anything measured.
_ALMOST_ZERO = 1e-9
# Nothing is subtracted from a missed objective before it is summed up: `tolerance` already is. A choice.
_NO_SLACK = 0.0
THROUGHPUT, LAG, LATENCY, CATCH_UP = "throughput", "lag_s", "latency_p95_s", "catch_up_s"
# An application is behind if more rows wait than arrive in this many batches: those of the last one, and as many again.
# A choice, as in `homeostat status`.
_BEHIND_BATCHES = 2.0


@dataclass(frozen=True, slots=True)
class ObjectiveMissed(Evidence):
    """`metric` is THROUGHPUT, LAG, LATENCY or CATCH_UP."""

    headline: ClassVar[str] = "the objective is not met"
    metric: str
    objective: float
    measured: float

    def summary(self) -> str:
        if self.metric == THROUGHPUT:
            return f"{whole(self.measured)} rows/s are processed, but the objective is {whole(self.objective)}"
        if self.metric == CATCH_UP:
            allowed = f"the objective is to catch up within {span(self.objective)}"
            return f"rows have been waiting for {whole_span(self.measured)}, but {allowed}"
        what = "lag" if self.metric == LAG else "p95 latency"
        return f"the {what} is {span(self.measured)}, but the objective is at most {span(self.objective)}"


@dataclass(frozen=True, slots=True)
class SloDetector:
    """Reports a throughput below the objective, a lag or latency above it, or a backlog that lasts for too long."""

    sensitivity: Sensitivity = Sensitivity()
    tolerance: float = SLO_TOLERANCE
    name: str = "slo-violation"

    def detect(self, view: View) -> Iterator[Symptom]:
        per_s, lag_s = view.objective.throughput_per_s, view.objective.lag_s
        if per_s is not None:
            rates = np.array([d.rows / d.span_s if d.span_s > 0 else math.nan for d in view.current])
            excess = per_s / np.where(rates > 0, rates, _ALMOST_ZERO)
            yield from self._judge(excess, np.isfinite(rates), THROUGHPUT, per_s)
        if lag_s is not None:
            lags = np.array([lag_of(d.pending_rows, d.arrival_per_s) for d in view.current])
            yield from self._judge(np.where(lags > 0, lags, _ALMOST_ZERO) / lag_s, np.isfinite(lags), LAG, lag_s)
        latency_s = view.objective.latency_p95_s
        if latency_s is not None:
            took_s = np.array([latency_p95_s(d) if view.micro_batch else NAN for d in view.current])
            yield from self._judge(took_s / latency_s, np.isfinite(took_s), LATENCY, latency_s)
        catch_up_s = view.objective.catch_up_s
        if catch_up_s is not None and (behind_s := behind_for_s(view)) > catch_up_s:
            missed = ObjectiveMissed(CATCH_UP, catch_up_s, behind_s)
            yield Symptom(SLO_VIOLATION, "", 1.0 - catch_up_s / behind_s, missed)

    def _judge(self, excess: Array, measured: Array, metric: str, objective: float) -> Iterator[Symptom]:
        if len(excess) < self.sensitivity.least:
            return
        if not measured[-LEAST_OBSERVATIONS:].any():
            yield Symptom(UNKNOWN, evidence=MissingMetric(self.name, metric))
            return
        logs = np.log(excess[measured.astype(bool)]) - self.tolerance
        sums = cusum(whiten(logs, fit(logs), self.sensitivity.floor), _NO_SLACK)
        recent = float(np.median(logs[-LEAST_OBSERVATIONS:]))
        if sums[-1] >= self.sensitivity.alarm and recent > 0:
            ratio = math.exp(recent)
            value = objective / ratio if metric == THROUGHPUT else objective * ratio
            yield Symptom(SLO_VIOLATION, "", 1.0 - 1.0 / ratio, ObjectiveMissed(metric, objective, value))


def behind_for_s(view: View) -> float:
    """Return for how long more rows have been waiting than those of two batches; 0 if they are not."""
    since_s = view.now_s
    for digest in reversed(view.history):
        if not (math.isfinite(digest.pending_rows) and math.isfinite(digest.arrival_per_s)):
            continue
        if not _is_behind(digest):
            break
        since_s = digest.at_s
    return view.now_s - since_s


def _is_behind(digest: Digest) -> bool:
    period_s = next((each for each in (digest.trigger_s, digest.seconds, digest.span_s) if each > 0), 0.0)
    return digest.pending_rows > _BEHIND_BATCHES * period_s * digest.arrival_per_s


def latency_p95_s(digest: Digest) -> float:
    return latency_of(digest.seconds, digest.trigger_s, lag_of(digest.pending_rows, digest.arrival_per_s))


def latency_of(seconds: float, trigger_s: float, lag_s: float) -> float:
    """Return the latency of 95 % of the rows, from arrival to commit; NaN if any part of it is unknown.

    A row waits for up to a period until its batch begins, and then for the duration of the batch. A backlog adds to
    both.
    """
    period_s = max(trigger_s if math.isfinite(trigger_s) else 0.0, seconds)
    return _MOST_WAIT * period_s + seconds + max(0.0, lag_s - seconds)


def lag_of(pending_rows: float, arrival_per_s: float) -> float:
    """Return how long ago the rows that are read now arrived; NaN if rows wait and none arrive, or if it is unknown."""
    if pending_rows == 0:
        return 0.0
    return pending_rows / arrival_per_s if arrival_per_s > 0 else NAN
