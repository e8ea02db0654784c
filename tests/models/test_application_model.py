"""What arrives and what waits are part of the model of an application."""

from __future__ import annotations

import math

import pytest

from homeostat.core.configuration import TRIGGER_S, Knob
from homeostat.lab.scenario_model import from_scenario
from support.words_model import words_model, words_scenario

TRIGGER = Knob(TRIGGER_S, "main")


def test_what_arrives_and_what_waits_are_part_of_the_model() -> None:
    model = words_model()
    assert model.arrival_per_s == pytest.approx(1_600.0, rel=0.1)
    assert model.backlog_rows == 0.0
    behind = from_scenario(words_scenario(9_000.0, varied=False))
    assert behind.backlog_rows > 100_000
    assert math.isinf(behind.catch_up_s(behind.configuration, 9_000.0, behind.backlog_rows))
