"""A loop that has seen nothing gives no model, and the error says what to do."""

from __future__ import annotations

import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.loop_state import State
from homeostat.log_views.watched_model import WATCHING, model_of


def test_a_loop_that_saw_nothing_is_refused() -> None:
    with pytest.raises(ConfigError) as refused:
        model_of(State(mode="observe"), 0.0, "scenario.toml")
    assert refused.value.fix == "use a longer recording or scenario"


def test_the_watching_policy_can_change_nothing() -> None:
    assert (WATCHING.detectors, WATCHING.diagnosers, WATCHING.resolvers) == ((), (), ())
