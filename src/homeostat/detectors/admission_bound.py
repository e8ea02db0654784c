"""The bound on rows per trigger is reached batch after batch, though the batches themselves are healthy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.configuration import ROWS_PER_TRIGGER
from homeostat.core.evidence import Evidence
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import ADMISSION_BOUND
from homeostat.core.view import View
from homeostat.core.wording import whole
from homeostat.detectors.sensitivity import Sensitivity

_FULL = 0.98


@dataclass(frozen=True, slots=True)
class AdmissionEvidence(Evidence):
    headline: ClassVar[str] = "the limit on rows per trigger holds {where} back"
    limit_rows: float
    rate_per_s: float
    pending_rows: float

    def summary(self) -> str:
        limit, pending = whole(self.limit_rows), whole(self.pending_rows)
        return f"every batch is full at {limit} rows and ends in time, while {pending} rows wait"


@dataclass(frozen=True, slots=True)
class AdmissionDetector:
    """Full batches that end within their trigger while rows wait, and do not get fewer."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = "admission-bound"

    def detect(self, view: View) -> Iterator[Symptom]:
        bound = sum(value for knob, value in view.configuration.values.items() if knob.kind == ROWS_PER_TRIGGER)
        digests = view.current[-max(LEAST_OBSERVATIONS, self.sensitivity.least) :]
        if bound <= 0 or len(digests) < LEAST_OBSERVATIONS:
            return
        rows, seconds, trigger_s, pending, arrival = (
            np.array([getattr(d, name) for d in digests])
            for name in ("rows", "seconds", "trigger_s", "pending_rows", "arrival_per_s")
        )
        full = bool((rows >= _FULL * bound).all())
        in_time = bool((seconds <= np.maximum(trigger_s, 1.0)).all())
        waiting = bool((pending > 0).all()) and float(pending[-1]) >= float(pending[0])
        if full and in_time and waiting:
            rate = float(np.median(rows / np.maximum(trigger_s, 1.0)))
            short = 1.0 - rate / float(np.nanmax(arrival)) if np.isfinite(arrival).any() else 0.2
            evidence = AdmissionEvidence(float(bound), rate, float(pending[-1]))
            yield Symptom(ADMISSION_BOUND, "", min(1.0, max(0.2, short)), evidence)
