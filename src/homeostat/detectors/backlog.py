"""Rows wait at the source, and more of them every time."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import GROWING_BACKLOG, UNKNOWN
from homeostat.core.view import View
from homeostat.core.wording import number, whole

_OVER = 9
_MOSTLY = 0.75


@dataclass(frozen=True, slots=True)
class BacklogEvidence(Evidence):
    headline: ClassVar[str] = "more and more rows wait at the source"
    pending_rows: float
    growth_per_s: float

    def summary(self) -> str:
        return f"{whole(self.pending_rows)} rows wait, {number(self.growth_per_s)} more every second"


@dataclass(frozen=True, slots=True)
class GrowingBacklogDetector:
    """`least_intervals`: how many intervals' worth of arrivals must have been added before it counts."""

    least_intervals: float = 1.0
    name: str = "growing-backlog"

    def detect(self, view: View) -> Iterator[Symptom]:
        digests = view.current[-_OVER:]
        pending = np.array([d.pending_rows for d in digests])
        if len(pending) < 4:
            return
        if not np.isfinite(pending[-LEAST_OBSERVATIONS:]).any():
            yield Symptom(UNKNOWN, evidence=MissingMetric(self.name, "pending rows"))
            return
        known = pending[np.isfinite(pending)]
        steps = np.diff(known)
        arrivals = np.array([d.arrival_per_s * d.span_s for d in digests])
        if not np.isfinite(arrivals).any():
            yield Symptom(UNKNOWN, evidence=MissingMetric(self.name, "arrival"))
            return
        one = float(np.nanmedian(arrivals))
        grown = float(known[-1] - known[0])
        if len(steps) and grown > self.least_intervals * one > 0 and float(np.mean(steps > 0)) >= _MOSTLY:
            seconds = sum(d.span_s for d in digests[1:])
            evidence = BacklogEvidence(float(known[-1]), grown / seconds if seconds else math.nan)
            yield Symptom(GROWING_BACKLOG, "", min(1.0, grown / (one * len(steps))), evidence)
