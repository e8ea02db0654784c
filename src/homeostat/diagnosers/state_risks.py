"""What the symptoms of a state mean. Each has one cause, so that there is nothing to weigh."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.causes import (
    DAMAGED_SNAPSHOTS,
    LATE_SNAPSHOTS,
    MEMORY_PRESSURE,
    SLOW_RECOVERY,
    UNBOUNDED_STATE,
    UNSCALABLE_STATE,
)
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import FIXED_STATE, LONG_REPLAY, SNAPSHOT_LAG, SNAPSHOT_REPAIRED, STATE_GROWS, STATE_MEMORY
from homeostat.core.view import View

# How sure each is. State may grow because it is meant to be kept for longer than it was watched.
_CAUSES = {
    STATE_GROWS: (UNBOUNDED_STATE, 0.7),
    STATE_MEMORY: (MEMORY_PRESSURE, 0.8),
    LONG_REPLAY: (SLOW_RECOVERY, 0.8),
    SNAPSHOT_LAG: (LATE_SNAPSHOTS, 0.9),
    SNAPSHOT_REPAIRED: (DAMAGED_SNAPSHOTS, 0.95),
    FIXED_STATE: (UNSCALABLE_STATE, 0.95),
}


@dataclass(frozen=True, slots=True)
class StateDiagnoser:
    name: str = "state-health"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind in _CAUSES:
                cause, probability = _CAUSES[symptom.kind]
                yield Diagnosis(cause, symptom.component, probability, symptom.evidence, (symptom,))
