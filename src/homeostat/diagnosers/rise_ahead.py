"""Names a forecast rise of the load as a cause, although nothing is wrong yet."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.causes import RISE_AHEAD
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import FORECAST_RISE
from homeostat.core.view import View
from homeostat.diagnosers.probabilities import SHOWN


@dataclass(frozen=True, slots=True)
class AheadDiagnoser:
    """`confidence`: the probability of the diagnosis. A higher value makes acting ahead win over other actions more
    often. The policies set it to the quantile of the forecast that they plan for (`confidence` of `[planning]`).
    """

    confidence: float = SHOWN
    name: str = "ahead"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind == FORECAST_RISE:
                yield Diagnosis(RISE_AHEAD, symptom.component, self.confidence, symptom.evidence, (symptom,))
