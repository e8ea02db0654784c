"""A rise in the forecast is a cause of its own: nothing is wrong yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.causes import RISE_AHEAD
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import FORECAST_RISE
from homeostat.core.view import View


@dataclass(frozen=True, slots=True)
class AheadDiagnoser:
    """As probable as the forecast was sure."""

    confidence: float = 0.9
    name: str = "ahead"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind == FORECAST_RISE:
                yield Diagnosis(RISE_AHEAD, symptom.component, self.confidence, symptom.evidence, (symptom,))
