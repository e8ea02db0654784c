"""Partitions of a keyed stage that stay uneven, batch after batch, whatever makes them so."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from homeostat.core.findings import UNEVEN, Symptom
from homeostat.core.view import View
from homeostat.detectors.instance_skew import typically
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.capacity import arrived_rows
from homeostat.models.partition_sizes import over_the_mean

_EMPTY = 0.05


@dataclass(frozen=True, slots=True)
class UnevenPartitionsDetector:
    """The largest part is `ratio` times the mean one, and is so in every batch. Unlike a skew it needs no peers to
    stand out from: half of the partitions may be empty. That rows are unknown is for `rate-skew` to say."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = UNEVEN

    def detect(self, view: View) -> Iterator[Symptom]:
        least = self.sensitivity.least
        for component in view.topology:
            if not component.keyed or component.partitions is None:
                continue
            rows = arrived_rows(view.window, component.name, least)
            if len(rows) < least or rows.shape[1] < 2 or not np.isfinite(rows).all():
                continue
            typical = typically(rows, least)
            mean, largest = float(typical.mean()), int(typical.argmax())
            if not over_the_mean(rows, self.sensitivity.ratio)[:, largest].all():
                continue
            over = float(typical[largest]) / mean
            high = tuple(int(i) for i in np.flatnonzero(typical >= self.sensitivity.ratio * mean))
            evidence = {
                "rows over the mean": over,
                "partitions": float(len(typical)),
                "almost empty": float(np.count_nonzero(typical <= _EMPTY * mean)),
            }
            workers = view.workers_of(component.name, high)
            yield Symptom(UNEVEN, component.name, 1.0 - 1.0 / over, evidence, high, workers)
