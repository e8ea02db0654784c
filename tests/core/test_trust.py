"""How far predictions have been off is kept for each component."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.findings import Outcome
from homeostat.core.loop_state import State
from homeostat.core.trust import Trust, Trusts, with_outcome
from homeostat.runtime.saved_state import restore_state, state_json

NOTHING: Trusts = {}


def test_the_error_is_what_the_noise_does_not_explain() -> None:
    trusts = with_outcome(NOTHING, "count", Outcome("helped", 0.4, 0.7, 0.1))
    assert trusts["count"].error == pytest.approx(0.2)
    assert trusts["count"].off == pytest.approx(0.3)
    assert trusts["count"].actions == 1


def test_the_newest_action_counts_half() -> None:
    trusts = with_outcome({"count": Trust(0.6, 3, 0.8)}, "count", Outcome("helped", 0.5, 0.5, 0.05))
    assert trusts["count"] == Trust(0.3, 4, 0.4)


@pytest.mark.parametrize("verdict", ["confounded", "untestable", "superseded"])
def test_what_proves_nothing_does_not_count(verdict: str) -> None:
    assert with_outcome(NOTHING, "count", replace(Outcome("helped", 0.0, 1.0, 0.1), verdict=verdict)) == {}  # type: ignore[arg-type]
    assert with_outcome(NOTHING, "count", Outcome("unclear")) == {}
    assert math.isnan(Outcome("unclear").observed_gain)


def test_it_outlives_the_process() -> None:
    state = State(trust={"count": Trust(0.25, 2, 0.3)})
    assert restore_state(State(), state_json(state)).state.trust == state.trust
