"""Watching a scenario gives a model of it; nothing is changed on the way."""

from __future__ import annotations

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB
from homeostat.core.errors import ConfigError
from homeostat.lab.scenario_model import from_scenario
from homeostat.models.model_json import to_json
from homeostat.store import codec
from support.models import scenario, watched_model


def test_the_model_has_the_setup_and_the_load_of_the_scenario() -> None:
    model = watched_model()
    assert model.configuration.values[EXECUTORS_KNOB] == 2
    assert model.arrival_per_s == pytest.approx(200.0, rel=0.2)


def test_the_same_seed_gives_the_same_model() -> None:
    assert codec.dump(to_json(from_scenario(scenario(), seed=1))) == codec.dump(to_json(watched_model()))
    assert codec.dump(to_json(from_scenario(scenario(), seed=2))) != codec.dump(to_json(watched_model()))


def test_a_scenario_that_is_too_short_is_refused() -> None:
    with pytest.raises(ConfigError, match="small: has too few batches with rows to fit a model to"):
        from_scenario(scenario(duration_s=10.0))
