"""The causes behind the symptoms of a state, its savepoints and the disks. Each has one, so nothing is weighed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.causes import (
    DAMAGED_SNAPSHOTS,
    DISK_NEARLY_FULL,
    LATE_SNAPSHOTS,
    MANY_SAVEPOINTS,
    MEMORY_PRESSURE,
    SLOW_RECOVERY,
    UNBOUNDED_STATE,
    UNSCALABLE_STATE,
)
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import (
    DISK_SPACE,
    FIXED_STATE,
    LONG_REPLAY,
    SAVEPOINTS,
    SNAPSHOT_LAG,
    SNAPSHOT_REPAIRED,
    STATE_GROWS,
    STATE_MEMORY,
)
from homeostat.core.view import View
from homeostat.diagnosers.probabilities import EFFECT_SHOWN, FITS, REPORTED, SHOWN

# State may also grow because it is meant to be kept for longer than it was watched.
_CAUSES = {
    STATE_GROWS: (UNBOUNDED_STATE, FITS),
    STATE_MEMORY: (MEMORY_PRESSURE, EFFECT_SHOWN),
    LONG_REPLAY: (SLOW_RECOVERY, EFFECT_SHOWN),
    SNAPSHOT_LAG: (LATE_SNAPSHOTS, SHOWN),
    SNAPSHOT_REPAIRED: (DAMAGED_SNAPSHOTS, REPORTED),
    FIXED_STATE: (UNSCALABLE_STATE, REPORTED),
    DISK_SPACE: (DISK_NEARLY_FULL, REPORTED),
    SAVEPOINTS: (MANY_SAVEPOINTS, REPORTED),
}


@dataclass(frozen=True, slots=True)
class StateDiagnoser:
    name: str = "state-health"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind in _CAUSES:
                cause, probability = _CAUSES[symptom.kind]
                yield Diagnosis(cause, symptom.component, probability, symptom.evidence, (symptom,))
