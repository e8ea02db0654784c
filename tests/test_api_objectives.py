"""Objectives as the API writes them."""

from __future__ import annotations

import pytest

from homeostat.api_objectives import CatchUp, Cost, Lag, Latency, ModelError, Provisioning, Throughput, combine
from homeostat.core.errors import ConfigError
from homeostat.core.objective import Objective


def test_a_number_is_in_rows_per_second_or_seconds_and_text_has_a_unit() -> None:
    assert Throughput(50_000) == Throughput("50k/s") == Objective(throughput_per_s=50_000.0)
    assert Lag(90) == Lag("1.5 min") == Objective(lag_s=90.0)
    assert CatchUp("10 min") == Objective(catch_up_s=600.0)
    assert Latency("30 s") == Objective(latency_p95_s=30.0)
    assert Cost(6) == Objective(cost_limit=6.0)
    assert ModelError("50 %") == ModelError(0.5)


def test_several_objectives_are_combined_and_each_kind_is_given_once() -> None:
    assert combine(None) == combine([]) == Provisioning() == Objective()
    assert combine([Throughput(100), Cost(4)]) == Objective(throughput_per_s=100.0, cost_limit=4.0)
    with pytest.raises(ConfigError, match="objective: lag_s is given twice"):
        combine([Lag(10), Lag(20)])


@pytest.mark.parametrize("value", [0, -1, float("inf"), float("nan")])
def test_an_objective_is_above_zero_and_finite(value: float) -> None:
    with pytest.raises(ConfigError, match="Lag must be above 0"):
        Lag(value)


def test_text_that_is_no_duration_is_an_error() -> None:
    with pytest.raises(ConfigError, match="Lag must be a duration"):
        Lag("ten")
