"""Detects rows that are still spread although no key, or no partition of the source, is hot any more."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.evidence import Evidence
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import EVEN_KEYS
from homeostat.core.view import View
from homeostat.core.wording import number
from homeostat.detectors.instance_skew import with_empty_partitions
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.models.batch_model import batch_time

# The largest partition over the mean up to which rows are even. It is below the ratio that counts as uneven, so that
# spreading and gathering do not take turns; lower still would keep a spread that costs more than it saves. A choice.
_EVEN_RATIO = 1.2
# Times as many observations as for other symptoms, for the same reason. A choice.
_TIMES_LEAST = 4
# With more partitions than this for each slot a larger one hardly matters, because the slots do the others meanwhile. A
# choice.
_PARTITIONS_A_SLOT = 4


def imbalance_of(share: float, partitions: int) -> float:
    """Return the rows of the partition with a key of this share over the mean, if the other keys were even."""
    return 1.0 + share * (partitions - 1)


@dataclass(frozen=True, slots=True)
class EvenKeysEvidence(Evidence):
    headline: ClassVar[str] = "the rows of {where} are spread although no key is hot"
    largest_over_mean_unspread: float
    partitions: float

    def summary(self) -> str:
        return (
            f"without spreading, its largest partition would have {number(self.largest_over_mean_unspread)} × the mean"
        )


@dataclass(frozen=True, slots=True)
class EvenKeysDetector:
    """Reports a stage whose rows are spread although they would be almost even without that, in each of many batches.

    It judges by the partition with the largest key, or at a source by the largest partition.
    """

    sensitivity: Sensitivity = Sensitivity()
    name: str = EVEN_KEYS

    def detect(self, view: View) -> Iterator[Symptom]:
        for component in view.topology:
            if view.spread(component.name) < 2:
                continue
            rows = with_empty_partitions(view, component.name, view.window.tasks(component.name, "rows"))
            if rows.shape[1] < 2:
                continue
            many = _TIMES_LEAST * self.sensitivity.least
            parts = _partitions_that_matter(view, rows.shape[1])
            over = [imbalance_of(load.share, parts) for load in view.key_loads(component.name)[-many:]]
            if component.kind == "source" and not over:
                over = [float(line.max() / line.mean()) for line in rows[-many:] if line.sum() > 0]
            if (
                len(view.current) >= many
                and len(over) >= min(many, len(rows))
                and max(over, default=math.inf) <= _EVEN_RATIO
            ):
                evidence = EvenKeysEvidence(max(over), float(rows.shape[1]))
                yield Symptom(EVEN_KEYS, component.name, 0.0, evidence)


def _partitions_that_matter(view: View, partitions: int) -> int:
    batch = batch_time(view) if view.micro_batch else None
    return partitions if batch is None else min(partitions, max(2, round(_PARTITIONS_A_SLOT * batch.slots)))
