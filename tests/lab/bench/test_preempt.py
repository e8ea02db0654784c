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
    assert judge([50.0], 105.0, [100.0])["accepted"]
    assert not judge([51.0], 100.0, [100.0])["accepted"]
    assert not judge([0.0], 106.0, [100.0])["accepted"]


def judge(ahead_s: list[float], hours: float, reactive_s: list[float], steady: bool = True) -> dict[str, Any]:
    """Runs of one seed each; reacting takes 100 executor hours."""

    def runs(violations_s: list[float], hours: float) -> list[dict[str, float]]:
        return [{"violation_s": violation_s, "executor_hours": hours} for violation_s in violations_s]

    return preempt.verdict_json({"ahead": runs(ahead_s, hours), "reactive": runs(reactive_s, 100.0)}, steady=steady)


def test_where_spikes_differ_from_day_to_day_acting_ahead_must_not_be_worse_beyond_the_interval() -> None:
    assert judge([120.0, 90.0, 130.0], 105.0, [100.0] * 3, steady=False)["accepted"]
    verdict = judge([120.0, 101.0, 130.0], 100.0, [100.0] * 3, steady=False)
    assert not verdict["accepted"]
    assert verdict["more_violation_s"] == {"median": 20.0, "low": 1.0, "high": 30.0}
    assert not judge([0.0], 106.0, [100.0], steady=False)["accepted"]


def test_the_figures_of_a_policy_are_medians_over_the_seeds() -> None:
    verdict = judge([10.0, 30.0, 80.0], 100.0, [100.0, 0.0, 20.0])
    assert verdict["policies"]["ahead"]["violation_s"] == 30.0
    assert len(verdict["policies"]["ahead"]["runs"]) == 3
    assert verdict["violations_over_reactive"] == pytest.approx(1.0)


def spike_minutes(case: preempt.Case, hour: float) -> list[int]:
    """The minutes after the hour at which a rise by a fifth within a minute begins, two hours around it."""
    days = np.arange(preempt.HISTORY_DAYS + 1)
    around = (days[:, None] * 1440 + np.arange(int(hour * 60) - 120, int(hour * 60) + 120)).ravel()
    rises = case.per_s[around] > 1.2 * case.per_s[around - 1]
    return ((np.flatnonzero(rises) % 240) - 120).tolist()


def synthetic(number: int) -> preempt.Case:
    return preempt.synthetic_case(days=1, spikes=preempt.SPIKES[number])


def test_the_spikes_of_the_first_load_come_at_the_same_minute_and_those_of_the_second_move() -> None:
    assert synthetic(0).steady
    assert spike_minutes(synthetic(0), 9.0).count(0) == preempt.HISTORY_DAYS + 1
    moved = synthetic(1)
    assert not moved.steady
    assert len(set(spike_minutes(moved, 9.0))) > 3
    assert preempt.synthetic_case(days=1, seed=2, spikes=preempt.SPIKES[1]).per_s.tolist() != moved.per_s.tolist()


def test_some_spikes_vanish_and_some_are_twice_as_high() -> None:
    at_nine = [case.per_s[9 * 60 :: 1440] / case.per_s[9 * 60 - 1 :: 1440] for case in map(synthetic, (0, 2, 3))]
    steady, vanishing, doubled = [np.round(each, 1).tolist() for each in at_nine]
    assert steady == [1.6] * 7
    assert set(vanishing) == {1.0, 1.6}
    assert set(doubled) == {1.6, 2.2}


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
    assert reactive["violation_s"] > 180.0, "minutes, where the one that knows has none"


def test_a_single_run_is_the_same_by_itself(measured: dict[str, Any]) -> None:
    assert [preempt.one(peak(), "hpa")] == measured["policies"]["hpa"]["runs"]
