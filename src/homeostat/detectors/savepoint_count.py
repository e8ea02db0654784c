"""Detects savepoints that accumulate, before they fill the disk."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.evidence import Evidence
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import SAVEPOINTS
from homeostat.core.view import View

# It only orders symptoms: savepoints alone stop nothing. A choice.
_SEVERITY = 0.3


@dataclass(frozen=True, slots=True)
class SavepointUse(Evidence):
    headline: ClassVar[str] = "there are many or large savepoints"
    path: str
    savepoints: int
    held_mb: float

    def summary(self) -> str:
        return f"{self.savepoints} savepoints in {self.path} hold {self.held_mb:,.0f} MB"


@dataclass(frozen=True, slots=True)
class SavepointDetector:
    """Reports a query with more than `most` savepoints, or whose savepoints hold more than `most_bytes`."""

    most: int = 20
    most_bytes: float = 20e9
    name: str = "savepoints"

    def detect(self, view: View) -> Iterator[Symptom]:
        latest = view.window.latest
        sample = latest.savepoints if latest is not None else None
        if sample is not None and (sample.count > self.most or sample.held_bytes > self.most_bytes):
            evidence = SavepointUse(sample.path, sample.count, sample.held_bytes / 1e6)
            yield Symptom(SAVEPOINTS, "", _SEVERITY, evidence)
