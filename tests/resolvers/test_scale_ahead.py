"""A forecast load is sized for, unless something is wrong already or the model was wrong."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.actions import SCALE_UP
from homeostat.core.causes import OVER_PROVISIONED, RISE_AHEAD, SLOW_INSTANCE
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Diagnosis
from homeostat.core.trust import Trust
from homeostat.resolvers.scale_ahead import ScaleAheadResolver, expected_per_s, is_trouble
from support.stages import stage

RISE = Diagnosis(RISE_AHEAD, "split", evidence=LoadRise(100.0, 700.0, 60.0, 400.0, 1.75))


def test_the_forecast_load_is_sized_for() -> None:
    (proposal,) = ScaleAheadResolver().resolve(stage(300.0), [RISE])
    assert proposal.kind == SCALE_UP
    assert max(proposal.patch.values.values()) >= 7
    assert expected_per_s([RISE]) == 700.0


def test_trouble_goes_first() -> None:
    slow = Diagnosis(SLOW_INSTANCE, "split")
    assert is_trouble(slow)
    assert not is_trouble(Diagnosis(OVER_PROVISIONED, "split"))
    assert list(ScaleAheadResolver().resolve(stage(300.0), [RISE, slow])) == []


def test_a_component_whose_predictions_were_off_is_left_out() -> None:
    doubtful = replace(stage(300.0), trust={"split": Trust(off=0.9, error=0.9, actions=3)})
    proposals = ScaleAheadResolver().resolve(doubtful, [RISE])
    assert all(knob.scope != "split" for proposal in proposals for knob in proposal.patch.values)
