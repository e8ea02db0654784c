"""Detects a disk that is nearly full, before a checkpoint or the log cannot be written."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.evidence import Evidence
from homeostat.core.findings import Symptom
from homeostat.core.observation import DiskSample
from homeostat.core.symptoms import DISK_SPACE
from homeostat.core.view import View
from homeostat.core.wording import span

# Less free space than this share of a disk counts as too little, however large the disk is: file systems slow down when
# they are nearly full. On a large disk, so much space may be free that nothing can happen soon. Choices.
_LEAST_SHARE, _ALWAYS_ENOUGH_BYTES = 0.05, 20e9
# A disk below half of its limit is as bad as it gets. It only orders symptoms. A choice.
_LEAST_SEVERITY = 0.5


def enough_bytes(total_bytes: float, least_free: float) -> float:
    """A disk of this size with less free space than this counts as nearly full."""
    return max(least_free, min(_LEAST_SHARE * total_bytes, _ALWAYS_ENOUGH_BYTES))


@dataclass(frozen=True, slots=True)
class DiskSpace(Evidence):
    headline: ClassVar[str] = "a disk is nearly full"
    path: str
    used_for: str
    free_mb: float
    free_share: float
    full_in_s: float

    def summary(self) -> str:
        ahead = f", and it will be full in {span(self.full_in_s)} at this rate" if math.isfinite(self.full_in_s) else ""
        return f"{self.free_mb:,.0f} MB ({self.free_share:.0%}) are free on {self.path} ({self.used_for}){ahead}"


@dataclass(frozen=True, slots=True)
class DiskSpaceDetector:
    """Reports the fullest disk that has less than `least_free` bytes, or will be full `within_s` at this rate."""

    least_free: float = 2e9
    within_s: float = 86_400.0
    name: str = "disk-space"

    def detect(self, view: View) -> Iterator[Symptom]:
        latest = view.window.latest
        low = [disk for disk in (latest.disks if latest is not None else ()) if self._severity(disk) > 0]
        if low:
            worst = max(low, key=self._severity)
            free_share = worst.free_bytes / worst.total_bytes if worst.total_bytes > 0 else math.nan
            evidence = DiskSpace(worst.path, ", ".join(worst.uses), worst.free_bytes / 1e6, free_share, worst.full_in_s)
            yield Symptom(DISK_SPACE, "", self._severity(worst), evidence)

    def _severity(self, disk: DiskSample) -> float:
        """0 for a disk with enough space."""
        limit_bytes = enough_bytes(disk.total_bytes, self.least_free)
        shares = [disk.free_bytes / limit_bytes if disk.free_bytes < limit_bytes else math.inf]
        shares += [disk.full_in_s / self.within_s] if disk.full_in_s < self.within_s else []
        return max(_LEAST_SEVERITY, 1.0 - min(shares)) if min(shares) < math.inf else 0.0
