"""The parts of experiment E5 are wrong on purpose."""

from __future__ import annotations

from homeostat.core.configuration import PARALLELISM, Knob
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import IDLE, PRESSURE
from homeostat.sim.scenario.wrong_threshold import MISREAD, MissetDiagnoser, TrustingResolver
from homeostat.testing import check_diagnoser, check_resolver
from support.stages import stage


def test_pressure_anywhere_is_blamed_on_the_first_operator() -> None:
    symptom = Symptom(PRESSURE, "lines")
    (diagnosis,) = MissetDiagnoser().diagnose(stage(100.0), [symptom, Symptom(IDLE, "split")])
    assert (diagnosis.cause, diagnosis.component, diagnosis.symptoms) == (MISREAD, "split", (symptom,))
    check_diagnoser(MissetDiagnoser(), [symptom])


def test_the_blamed_stage_is_doubled() -> None:
    diagnosis = Diagnosis(MISREAD, "split")
    (proposal,) = TrustingResolver().resolve(stage(100.0, 3), [diagnosis])
    assert proposal.patch.values == {Knob(PARALLELISM, "split"): 6}
    check_resolver(TrustingResolver(), [diagnosis])
