"""Rows that are spread though they would be even without: no key is hot any more, or no partition of the source."""

from __future__ import annotations

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

# Lower than what counts as uneven, and for longer: spreading and gathering must not take turns.
_EVEN = 1.2
_TIMES = 4
# With many partitions for each slot a larger one hardly matters: the others are done meanwhile.
_PARTS_A_SLOT = 4


def imbalance_of(share: float, partitions: int) -> float:
    """What the partition with a key of this share would get over the mean, were the other keys even."""
    return 1.0 + share * (partitions - 1)


@dataclass(frozen=True, slots=True)
class EvenKeysEvidence(Evidence):
    headline: ClassVar[str] = "the rows of {where} are spread although no key is hot"
    largest_over_mean_unspread: float
    partitions: float

    def summary(self) -> str:
        return (
            f"without the spread its largest partition would have {number(self.largest_over_mean_unspread)} × the mean"
        )


@dataclass(frozen=True, slots=True)
class EvenKeysDetector:
    """Of a stage whose rows are spread: in each of many batches, the partition with the largest key (at a source: the
    largest) would hardly stand out if they were not."""

    sensitivity: Sensitivity = Sensitivity()
    name: str = EVEN_KEYS

    def detect(self, view: View) -> Iterator[Symptom]:
        for component in view.topology:
            if view.spread(component.name) < 2:
                continue
            rows = with_empty_partitions(view, component.name, view.window.tasks(component.name, "rows"))
            if rows.shape[1] < 2:
                continue
            many = _TIMES * self.sensitivity.least
            parts = _telling_parts(view, rows.shape[1])
            over = [imbalance_of(load.share, parts) for load in view.key_loads(component.name)[-many:]]
            if component.kind == "source" and not over:
                over = [float(line.max() / line.mean()) for line in rows[-many:] if line.sum() > 0]
            if len(view.current) >= many and len(over) >= min(many, len(rows)) and max(over, default=2.0) <= _EVEN:
                evidence = EvenKeysEvidence(max(over), float(rows.shape[1]))
                yield Symptom(EVEN_KEYS, component.name, 0.0, evidence)


def _telling_parts(view: View, partitions: int) -> int:
    batch = batch_time(view) if view.micro_batch else None
    return partitions if batch is None else min(partitions, max(2, round(_PARTS_A_SLOT * batch.slots)))
