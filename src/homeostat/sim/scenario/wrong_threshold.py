"""A diagnoser with a wrong threshold and a resolver that trusts it. Experiment E5 shows that the loop recovers from
both. Do not use them for anything else."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.actions import SCALE_UP
from homeostat.core.configuration import Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal, Symptom
from homeostat.core.symptoms import PENDING_SKEW, PRESSURE
from homeostat.core.view import View

MISREAD = "misread"


@dataclass(frozen=True, slots=True)
class MissetDiagnoser:
    """Blames every symptom on too few instances of the first stage after the sources."""

    probability: float = 0.99
    name: str = "misset"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        signs = tuple(symptom for symptom in symptoms if symptom.kind in (PRESSURE, PENDING_SKEW))
        if signs and view.topology.operators:
            yield Diagnosis(MISREAD, view.topology.operators[0].name, self.probability, symptoms=signs)


@dataclass(frozen=True, slots=True)
class TrustingResolver:
    """Doubles the stage that the diagnoser blames, and predicts that everything will be twice as fast."""

    name: str = "trusting"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            if diagnosis.cause == MISREAD:
                twice = 2 * int(view.parallelism(diagnosis.component))
                yield Proposal(
                    SCALE_UP,
                    (diagnosis,),
                    Patch({view.topology[diagnosis.component].scaled_by: twice}),
                    component=diagnosis.component,
                    prediction=Prediction(math.log(2), (diagnosis.component,), "everything twice as fast"),
                )
