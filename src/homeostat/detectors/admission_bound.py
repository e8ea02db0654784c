"""Detects that the limit on rows per trigger slows a query down although its batches end in time."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.configuration import ROWS_PER_TRIGGER
from homeostat.core.evidence import Evidence
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.observation import Array
from homeostat.core.symptoms import ADMISSION_BOUND
from homeostat.core.view import View
from homeostat.core.wording import whole
from homeostat.detectors.sensitivity import Sensitivity

# A batch counts as full from this share of the limit: sources divide the limit by partition and round it down, while a
# lower share would take an ordinary batch for a full one. A choice.
_FULL = 0.98
# Triggers shorter than this count as this long: without a trigger interval a batch would never be in time. A choice.
_SHORTEST_TRIGGER_S = 1.0
# If more rows wait than this many times those that arrive during a batch, earlier batches have left them. Arrivals
# vary, so a smaller factor mistakes new rows for those; a larger one finds a limit later. A choice.
_BESIDE_A_BATCH = 1.5
# Severity is the share of the arrivals that the limit refuses. It is at least this, so that a limit that is only just
# reached is reported too, and this where the arrivals are not known. A choice.
_LEAST_SEVERITY = 0.2


@dataclass(frozen=True, slots=True)
class AdmissionEvidence(Evidence):
    headline: ClassVar[str] = "the limit on rows per trigger slows {where} down"
    limit_rows: float
    rate_per_s: float
    pending_rows: float

    def summary(self) -> str:
        limit, pending = whole(self.limit_rows), whole(self.pending_rows)
        return f"every batch is full at {limit} rows and ends in time, while {pending} rows wait"


def _unknown_limit(rows: Array, seconds: Array, pending: Array, arrival_per_s: Array) -> float:
    """Return the rows of each batch if all have the same number while more and more rows wait, and 0 otherwise. Such
    batches have a limit that the configuration does not show.

    The rows that arrive while a batch runs wait in any case, so that only more of them show a limit."""
    most = float(rows.max())
    if not ((rows >= _FULL * most).all() and (np.diff(pending) > 0).all()):
        return 0.0
    return most if (pending > _BESIDE_A_BATCH * seconds * np.nan_to_num(arrival_per_s)).all() else 0.0


@dataclass(frozen=True, slots=True)
class AdmissionDetector:
    """Reports batches that are full and end within their trigger interval, while the number of waiting rows does not
    fall.
    """

    sensitivity: Sensitivity = Sensitivity()
    name: str = "admission-bound"

    def detect(self, view: View) -> Iterator[Symptom]:
        limit = sum(value for knob, value in view.configuration.values.items() if knob.kind == ROWS_PER_TRIGGER)
        digests = view.current[-max(LEAST_OBSERVATIONS, self.sensitivity.least) :]
        if len(digests) < LEAST_OBSERVATIONS:
            return
        rows, seconds, trigger_s, pending, arrival = (
            np.array([getattr(d, name) for d in digests])
            for name in ("rows", "seconds", "trigger_s", "pending_rows", "arrival_per_s")
        )
        limit = limit or _unknown_limit(rows, seconds, pending, arrival)
        full = limit > 0 and bool((rows >= _FULL * limit).all())
        in_time = bool((seconds <= np.maximum(trigger_s, _SHORTEST_TRIGGER_S)).all())
        waiting = bool((pending > 0).all()) and float(pending[-1]) >= float(pending[0])
        if full and in_time and waiting:
            rate = float(np.median(rows / np.maximum(trigger_s, _SHORTEST_TRIGGER_S)))
            refused_share = 1.0 - rate / float(np.nanmax(arrival)) if np.isfinite(arrival).any() else _LEAST_SEVERITY
            evidence = AdmissionEvidence(float(limit), rate, float(pending[-1]))
            yield Symptom(ADMISSION_BOUND, "", min(1.0, max(_LEAST_SEVERITY, refused_share)), evidence)
