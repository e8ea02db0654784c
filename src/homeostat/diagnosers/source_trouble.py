"""The causes behind the trouble of a source. The source itself reports them, so nothing is weighed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.evidence import SourceTrouble
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import SOURCE_TROUBLE
from homeostat.core.view import View
from homeostat.diagnosers.probabilities import REPORTED


@dataclass(frozen=True, slots=True)
class SourceDiagnoser:
    name: str = "source-trouble"
    while_unsettled: ClassVar[bool] = True

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        for symptom in symptoms:
            if symptom.kind == SOURCE_TROUBLE and isinstance(symptom.evidence, SourceTrouble):
                yield Diagnosis(symptom.evidence.cause, "", REPORTED, symptom.evidence, (symptom,))
