"""`homeostat bench preempt`: the loads it is made of, and what it makes of the runs."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.lab.bench import preempt
from homeostat.recorded_data.load import Load

pytestmark = pytest.mark.slow


def test_the_made_up_load_has_days_spikes_and_a_history() -> None:
    case = preempt.synthetic_case(days=1)
    assert len(case.per_s) == (preempt.HISTORY_DAYS + 1) * 1440
    at_nine = case.per_s[9 * 60 :: 1440] / case.per_s[9 * 60 - 5 :: 1440]
    assert np.median(at_nine) > 1.5
    assert case.scenario().duration_s == 86_400.0
    history = case.history(1)
    assert history.end_s == 0.0
    assert len(history.per_s) == preempt.HISTORY_DAYS * 1440


def test_a_recorded_load_is_scaled_to_the_same_peak() -> None:
    times_s = 300.0 * np.arange(10 * 288, dtype=np.float64)
    load = Load("trace.csv", times_s, 5.0 + np.sin(times_s / 86_400.0 * 2 * np.pi))
    case = preempt.from_trace(load, days=1)
    assert case.per_s.max() == pytest.approx(5_000.0)
    assert len(case.per_s) == (preempt.HISTORY_DAYS + 1) * 1440


def test_a_trace_that_is_too_short_is_refused() -> None:
    times_s = 300.0 * np.arange(288, dtype=np.float64)
    with pytest.raises(ConfigError, match="has 1 days; at least 3 are required"):
        preempt.from_trace(Load("short.csv", times_s, np.ones(288)))


def test_the_judgement_asks_for_half_the_violations_at_hardly_higher_cost() -> None:
    def run(violation_s: float, hours: float) -> dict[str, float]:
        return {"violation_s": violation_s, "executor_hours": hours}

    assert preempt.verdict_json({"ahead": run(50.0, 105.0), "reactive": run(100.0, 100.0)})["accepted"]
    assert not preempt.verdict_json({"ahead": run(51.0, 100.0), "reactive": run(100.0, 100.0)})["accepted"]
    assert not preempt.verdict_json({"ahead": run(0.0, 106.0), "reactive": run(100.0, 100.0)})["accepted"]


def peak() -> preempt.Case:
    """Three times the load comes for a quarter of an hour, as it did the day before."""
    minutes = np.arange(1440 + 40) % 1440
    return preempt.Case("peak", np.where((minutes >= 12) & (minutes < 27), 3_000.0, 1_000.0), 1)


@pytest.fixture(scope="module")
def measured() -> dict[str, Any]:
    figures: dict[str, Any] = preempt.measure([peak()])["cases"]["peak"]
    return figures


def test_all_meet_the_same_load_and_each_is_reported_with_what_it_cost(measured: dict[str, Any]) -> None:
    policies = measured["policies"]
    assert set(policies) == {preempt.AHEAD, preempt.REACTIVE, preempt.ORACLE, *preempt.PEERS}
    (least,) = {run["least_executor_hours"] for run in policies.values()}
    assert 0.9 * least < min(run["executor_hours"] for run in policies.values())
    assert policies["static"]["violation_s"] == 0
    assert policies["static"]["executor_hours"] > policies[preempt.REACTIVE]["executor_hours"]


def test_who_knows_the_future_acts_ahead_and_who_does_not_falls_behind(measured: dict[str, Any]) -> None:
    oracle, reactive = measured["policies"][preempt.ORACLE], measured["policies"][preempt.REACTIVE]
    assert (oracle["ahead"], oracle["violation_s"]) == (1, 0)
    assert reactive["ahead"] == 0
    assert reactive["violation_s"] > 120.0, "minutes, where the one that knows has none"


def test_a_single_run_is_the_same_by_itself(measured: dict[str, Any]) -> None:
    assert preempt.one(peak(), "hpa") == measured["policies"]["hpa"]
