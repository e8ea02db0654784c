"""Several sources are forecast each by its own champion; what is coming for the application is their sum."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.traffic import MINUTE_S, Traffic
from homeostat.core.view import View
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.models.forecast import Forecast, Score
from homeostat.models.load_ahead import AS_NOW, MOST_SEPARATE_SOURCES, coming, forecast_of
from homeostat.testing import instances, observations, view_of

DAY = 1440
NOW_S = 600.0
CLICKS = Traffic(-600, (200.0,) * 610)
ORDERS = Traffic(-600, (400.0,) * 10 + (100.0,) * 600)


def view(sources: Mapping[str, Traffic], whole: Traffic | None = None) -> View:
    """Four splits take 100/s each; their number takes ten seconds to change."""
    tasks = {"lines": instances(100.0, 0.01), "split": instances([100.0] * 4, 1.0)}
    base_view = view_of(observations(60, tasks, arrival_per_s=300.0))
    assert base_view.now_s == NOW_S
    now = {name: one.per_s[-1] if one.per_s else math.nan for name, one in sources.items()}
    history = tuple(replace(digest, arrivals_per_s=now) for digest in base_view.history)
    knobs = {knob: replace(spec, apply_s=10.0) for knob, spec in base_view.capabilities.knobs.items()}
    rates = np.sum([one.per_s for one in sources.values()], axis=0) if whole is None else ()
    total = whole or Traffic(next(iter(sources.values())).first, tuple(float(rate) for rate in rates))
    capabilities = replace(base_view.capabilities, knobs=knobs)
    return replace(base_view, capabilities=capabilities, history=history, traffic=replace(total, sources=dict(sources)))


def forecaster(
    *usable: Traffic, times: float = 2.0, step_s: float = MINUTE_S, at_s: float = -math.inf
) -> Callable[[Traffic, float, float], Forecast]:
    """From `at_s` on these come `times` what they are now, with a tenth to either side; nothing is known of others."""

    def made(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        is_usable = any(traffic.per_s == one.per_s[: len(traffic.per_s)] for one in usable)
        begins_s = traffic.end_s + step_s * np.arange(math.ceil(horizon_s / step_s))
        factor = np.where((traffic.end_s >= NOW_S) & (begins_s >= at_s), times, 1.0)
        middle = traffic.per_s[-1] * factor if traffic.per_s else factor
        values = np.stack([0.9 * middle, middle, 1.1 * middle], axis=1)
        quantiles, scores = (1 - confidence, 0.5, confidence), (Score("stated", 10.0, 0.5),)
        return Forecast(traffic.end_s, step_s, quantiles, values, "stated", is_usable, "", scores=scores)

    return made


def test_what_is_coming_is_the_sum_and_upper_ends_are_added_as_they_are() -> None:
    load_ahead = coming(view({"clicks": CLICKS, "orders": ORDERS}), 900.0, 0.9, forecaster(CLICKS, ORDERS))
    assert load_ahead is not None
    assert load_ahead.middle_per_s == pytest.approx(2 * (200.0 + 100.0))
    assert load_ahead.high_per_s == pytest.approx(1.1 * 2 * (200.0 + 100.0))
    assert {name: one.champion for name, one in load_ahead.sources.items()} == {"clicks": "stated", "orders": "stated"}
    assert load_ahead.champion == "stated for clicks, stated for orders"


def test_a_source_without_a_forecast_is_taken_to_stay_as_it_is() -> None:
    restless = Traffic(-600, ORDERS.per_s[:-10] + (90.0, 110.0) * 5)
    load_ahead = coming(view({"clicks": CLICKS, "orders": restless}), 900.0, 0.9, forecaster(CLICKS))
    assert load_ahead is not None
    assert load_ahead.middle_per_s == pytest.approx(2 * 200.0 + 100.0)
    assert load_ahead.high_per_s == pytest.approx(1.1 * 2 * 200.0 + 110.0)
    assert load_ahead.sources["orders"].champion == AS_NOW
    assert math.isnan(load_ahead.sources["orders"].mase)


def test_without_any_that_matters_or_with_one_unknown_nothing_is_said() -> None:
    both = {"clicks": CLICKS, "orders": ORDERS}
    assert coming(view(both), 900.0, 0.9, forecaster()) is None
    trickle = Traffic(-600, (2.0,) * 610)
    assert coming(view({"clicks": CLICKS, "trickle": trickle}), 900.0, 0.9, forecaster(trickle)) is None
    unseen = {"clicks": CLICKS, "orders": Traffic()}
    assert coming(view(unseen, CLICKS), 900.0, 0.9, forecaster(CLICKS)) is None
    silent = {"clicks": CLICKS, "orders": ORDERS.until(-NOW_S)}
    assert coming(view(silent, CLICKS), 900.0, 0.9, forecaster(CLICKS)) is None


def test_sources_on_different_grids_are_added_at_the_same_moments() -> None:
    fine, coarse = forecaster(CLICKS), forecaster(ORDERS, step_s=5 * MINUTE_S, at_s=NOW_S + 600.0)

    def either(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        mine = fine if traffic.per_s and traffic.per_s[-1] == CLICKS.per_s[-1] else coarse
        return mine(traffic, horizon_s, confidence)

    load_ahead = coming(view({"clicks": CLICKS, "orders": ORDERS}), 900.0, 0.9, either)
    assert load_ahead is not None
    assert load_ahead.step_s == MINUTE_S
    after_s = load_ahead.times_s - NOW_S
    assert load_ahead.middle_per_s[after_s < 600.0] == pytest.approx(400.0 + 100.0)
    assert load_ahead.middle_per_s[after_s >= 600.0] == pytest.approx(400.0 + 200.0)


def test_one_source_too_many_of_them_and_a_log_that_does_not_tell_them_apart_are_forecast_as_one() -> None:
    requests: list[Traffic] = []

    def noted(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        requests.append(traffic)
        return forecaster(CLICKS)(traffic, horizon_s, confidence)

    many = {f"source-{number}": Traffic(-600, (1.0,) * 610) for number in range(MOST_SEPARATE_SOURCES + 1)}
    young = {"clicks": Traffic(-200, (100.0,) * 210), "orders": Traffic(-200, (100.0,) * 210)}
    for snapshot in (view({"clicks": CLICKS}, CLICKS), view(many, CLICKS), view(young, CLICKS)):
        load_ahead = coming(snapshot, 900.0, 0.9, noted)
        assert load_ahead is not None
        assert (load_ahead.champion, dict(load_ahead.sources)) == ("stated", {})
        assert load_ahead.middle_per_s == pytest.approx(400.0)
    assert {one.per_s for one in requests} <= {CLICKS.per_s, *(CLICKS.per_s[:n] for n in range(610))}


def test_the_symptom_names_the_champion_and_the_error_of_each_source() -> None:
    rising = view({"lines": CLICKS, "orders": ORDERS})
    symptoms = RiseDetector(forecasts=forecaster(CLICKS, times=4.0, at_s=NOW_S + 120.0)).detect(rising)
    (symptom,) = [each for each in symptoms if each.component == "split"]
    assert symptom.evidence.figures()["expected_per_s"] == pytest.approx(1.1 * 800.0 + 100.0)
    figures = {
        name: value for name, value in symptom.evidence.figures().items() if "forecast" in name or "MASE" in name
    }
    assert figures == {"forecast of lines by": "stated", "forecast of orders by": AS_NOW, "error of lines (MASE)": 0.5}


def test_each_source_has_the_champion_that_its_own_history_chooses() -> None:
    """Clicks double for half an hour of every day, orders wander without any pattern."""
    chance = np.random.default_rng(1)
    minutes = np.arange(4 * DAY)
    spike = (minutes % DAY >= 15) & (minutes % DAY < 45)
    daily = 300.0 * (1.0 + spike) * np.exp(chance.normal(0.0, 0.03, len(minutes)))
    wandering = 300.0 * np.exp(np.cumsum(chance.normal(0.0, 0.005, len(minutes))))
    first = round(NOW_S / MINUTE_S) - len(minutes)
    sources = {"clicks": Traffic(first, tuple(daily.tolist())), "orders": Traffic(first, tuple(wandering.tolist()))}
    load_ahead = coming(view(sources), 1_800.0, 0.9, forecast_of)
    assert load_ahead is not None
    clicks, orders = load_ahead.sources["clicks"], load_ahead.sources["orders"]
    assert clicks.champion not in ("last value", AS_NOW)
    assert clicks.mase < 1
    assert orders.champion == AS_NOW
    during = (load_ahead.times_s - NOW_S > 1_000.0) & (load_ahead.times_s - NOW_S < 1_700.0)
    assert load_ahead.middle_per_s[during].min() > 450.0 + 0.9 * wandering[-10:].mean()
