"""Predictions that were too far off stop the model; the objective decides before the setting."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.objective import Objective
from homeostat.core.trust import Trust
from homeostat.resolvers.model_trust import doubt, is_doubted
from support.stages import stage

OFF = replace(stage(100.0), trust={"split": Trust(off=0.9, error=0.9, actions=3)})


def test_a_component_without_predictions_is_not_doubted() -> None:
    assert not is_doubted(stage(100.0), "split", 0.1)
    assert doubt(stage(100.0), "split", 0.1) == ""


def test_the_setting_decides_without_an_objective() -> None:
    assert is_doubted(OFF, "split", 0.5)
    assert not is_doubted(OFF, "split", 1.0)
    assert doubt(OFF, "split", 0.5) == "past predictions for it were off by 146%, and largest_error allows 65%"


def test_the_objective_overrides_the_setting() -> None:
    strict = replace(OFF, objective=Objective(model_error=0.1))
    assert "the objective allows 11%" in doubt(strict, "split", 1.0)
