"""The weights keep the order in which proposals should win."""

from __future__ import annotations

import pytest

from homeostat.resolvers import proposal_weights as weights
from homeostat.resolvers import scale


def test_a_restart_of_half_a_minute_costs_less_than_the_least_benefit() -> None:
    assert 30.0 * weights.PAUSE_WEIGHT < weights.LEAST_BENEFIT
    assert pytest.approx(1.0) == weights.PAUSE_WEIGHT * weights.PAUSE_WORTH_S


def test_scaling_weighs_a_pause_like_the_other_resolvers() -> None:
    assert pytest.approx(weights.PAUSE_WEIGHT) == scale._PAUSE_WEIGHT * scale._PAUSE_SHARE


def test_trouble_comes_before_money() -> None:
    assert weights.RESOURCE_WEIGHT < weights.LEAST_BENEFIT
