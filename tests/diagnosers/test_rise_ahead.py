"""A forecast rise is a cause of its own, with the confidence of the forecast."""

from __future__ import annotations

from homeostat.core.causes import RISE_AHEAD
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Symptom
from homeostat.core.symptoms import FORECAST_RISE, PRESSURE
from homeostat.diagnosers.rise_ahead import AheadDiagnoser
from homeostat.testing import check_diagnoser
from support.stages import stage

RISE = Symptom(FORECAST_RISE, "split", 0.5, LoadRise(100.0, 200.0, 60.0, 150.0, 1.3))


def test_a_forecast_rise_is_named_with_the_given_confidence() -> None:
    (diagnosis,) = AheadDiagnoser(confidence=0.7).diagnose(stage(100.0), [RISE, Symptom(PRESSURE, "split")])
    assert (diagnosis.cause, diagnosis.component, diagnosis.probability) == (RISE_AHEAD, "split", 0.7)
    assert diagnosis.evidence == RISE.evidence
    check_diagnoser(AheadDiagnoser(), [RISE])
