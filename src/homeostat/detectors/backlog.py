"""Detects that more and more rows wait at the source."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.stats import median
from homeostat.core.symptoms import GROWING_BACKLOG, UNKNOWN
from homeostat.core.view import View
from homeostat.core.wording import number, whole

# How many observations are checked for growth: more are surer, fewer react sooner. A choice.
_LOOK_BACK = 9
# With fewer observations than this there are too few steps to speak of growth. A choice.
_LEAST_LOOK_BACK = 4
# The share of the steps that must go up: a backlog that comes and goes does not count as growth. A choice.
_RISING_STEPS = 0.75


@dataclass(frozen=True, slots=True)
class BacklogEvidence(Evidence):
    headline: ClassVar[str] = "more and more rows wait at the source"
    pending_rows: float
    growth_per_s: float

    def summary(self) -> str:
        return f"{whole(self.pending_rows)} rows wait, {number(self.growth_per_s)} more every second"


@dataclass(frozen=True, slots=True)
class GrowingBacklogDetector:
    """Reports a backlog that grew in most of the last observations, by more than arrives in `least_intervals`."""

    # How many intervals' worth of arrivals must have been added: fewer would take the rows of
    # one late batch for a backlog. A choice.
    least_intervals: float = 1.0
    name: str = "growing-backlog"

    def detect(self, view: View) -> Iterator[Symptom]:
        digests = view.current[-_LOOK_BACK:]
        pending = np.array([d.pending_rows for d in digests])
        if len(pending) < _LEAST_LOOK_BACK:
            return
        if not np.isfinite(pending[-LEAST_OBSERVATIONS:]).any():
            yield Symptom(UNKNOWN, evidence=MissingMetric(self.name, "pending rows"))
            return
        measured = pending[np.isfinite(pending)]
        steps = np.diff(measured)
        arrivals = np.array([d.arrival_per_s * d.span_s for d in digests])
        if not np.isfinite(arrivals).any():
            yield Symptom(UNKNOWN, evidence=MissingMetric(self.name, "arrival"))
            return
        interval_rows = median(arrivals[np.isfinite(arrivals)])
        growth = float(measured[-1] - measured[0])
        if (
            len(steps)
            and growth > self.least_intervals * interval_rows > 0
            and float(np.mean(steps > 0)) >= _RISING_STEPS
        ):
            seconds = sum(d.span_s for d in digests[1:])
            evidence = BacklogEvidence(float(measured[-1]), growth / seconds if seconds else math.nan)
            yield Symptom(GROWING_BACKLOG, "", min(1.0, growth / (interval_rows * len(steps))), evidence)
