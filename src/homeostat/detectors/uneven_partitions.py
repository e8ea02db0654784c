"""Detects partitions of a keyed stage that stay uneven, batch after batch, whatever the reason."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.evidence import Evidence
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import UNEVEN
from homeostat.core.view import View
from homeostat.core.wording import number, whole
from homeostat.detectors.instance_skew import typically
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import arrived_rows
from homeostat.models.partition_sizes import over_the_mean

# A partition with less than this share of the mean is shown as almost empty. No decision depends on it. A choice.
_EMPTY = 0.05


@dataclass(frozen=True, slots=True)
class UnevenEvidence(Evidence):
    headline: ClassVar[str] = "the partitions of {where} stay uneven"
    largest_over_mean: float
    partitions: float
    almost_empty: float

    def summary(self) -> str:
        share = f"the largest of {whole(self.partitions)} gets {number(self.largest_over_mean)} × the mean"
        return f"{share}, {whole(self.almost_empty)} are almost empty"


@dataclass(frozen=True, slots=True)
class UnevenPartitionsDetector:
    """Reports a stage whose largest partition has `ratio` times the mean in every batch.

    Unlike a skew it needs no peers to differ from: half of the partitions may be empty. If rows are unknown, the
    detector `rate-skew` reports it.
    """

    sensitivity: Sensitivity = Sensitivity()
    name: str = UNEVEN

    def detect(self, view: View) -> Iterator[Symptom]:
        least = self.sensitivity.least
        count = len(view.window.telling(least))
        for component in view.topology:
            if not component.keyed or component.partitions is None:
                continue
            rows = arrived_rows(view.window, component.name, count)
            if not count or len(rows) < count or rows.shape[1] < 2 or not np.isfinite(rows).all():
                continue
            typical = typically(rows, least)
            mean, largest = float(typical.mean()), int(typical.argmax())
            if not over_the_mean(rows, self.sensitivity.ratio)[:, largest].all():
                continue
            over = float(typical[largest]) / mean
            high = tuple(int(i) for i in np.flatnonzero(typical >= self.sensitivity.ratio * mean))
            almost_empty = float(np.count_nonzero(typical <= _EMPTY * mean))
            evidence = UnevenEvidence(over, float(len(typical)), almost_empty)
            workers = view.workers_of(component.name, high)
            yield Symptom(UNEVEN, component.name, 1.0 - 1.0 / over, evidence, high, workers)
