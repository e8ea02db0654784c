"""A rise in the forecast is told just in time; a fall, a guess and a forecast that was wrong are not."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.actions import SCALE_UP
from homeostat.core.causes import OVER_PROVISIONED, RISE_AHEAD, UNDER_PROVISIONED
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.traffic import MINUTE_S, Traffic
from homeostat.core.trust import Trust
from homeostat.core.view import View
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.diagnosers.rise_ahead import AheadDiagnoser
from homeostat.models.forecast import Forecast
from homeostat.models.load_ahead import coming, forecast_of
from homeostat.resolvers.scale_ahead import ScaleAheadResolver
from homeostat.testing import instances, observations, view_of

DAY = 1440
NOW_S = 600.0
SEEN = Traffic(-600, (600.0,) * 10 + (300.0,) * 600)


def word_count(traffic: Traffic | None = None, arrival_per_s: float = 300.0) -> View:
    """Four splits take 100/s each; their number takes ten seconds to change, and an observation as long."""
    tasks = {"lines": instances(100.0, 0.01), "split": instances([100.0] * 4, 1.0)}
    view = view_of(observations(60, tasks, arrival_per_s=arrival_per_s))
    assert view.now_s == NOW_S
    knobs = {knob: replace(spec, apply_s=10.0) for knob, spec in view.capabilities.knobs.items()}
    capabilities = replace(view.capabilities, knobs=knobs)
    return replace(view, capabilities=capabilities, traffic=traffic or SEEN)


class Says:
    """A forecast that holds one rate until `at_s`, and another from then on."""

    def __init__(self, rate: float, then: float, at_s: float, usable: bool = True, earlier: float = 300.0) -> None:
        self.rates, self.at_s, self.usable, self.earlier = (rate, then), at_s, usable, earlier

    def __call__(self, traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        begins_s = traffic.end_s + MINUTE_S * np.arange(math.ceil(horizon_s / MINUTE_S))
        middle = np.where(begins_s < self.at_s, *self.rates)
        if traffic.end_s < NOW_S:
            middle = np.full(len(begins_s), self.earlier)
        values = np.stack([0.9 * middle, middle, 1.1 * middle], axis=1)
        quantiles = (1 - confidence, 0.5, confidence)
        return Forecast(traffic.end_s, MINUTE_S, quantiles, values, "stated", self.usable, "")


def split_symptoms(says: Says, view: View | None = None) -> list[Symptom]:
    return [s for s in RiseDetector(forecasts=says).detect(view or word_count()) if s.component == "split"]


def test_a_rise_is_reported_when_there_is_just_time_to_act() -> None:
    (symptom,) = split_symptoms(Says(300.0, 600.0, NOW_S + 120.0))
    assert symptom.evidence.figures()["expected_per_s"] == pytest.approx(660.0)
    assert symptom.evidence.figures()["ahead_s"] == 30.0
    assert float(symptom.evidence.figures()["arrival_per_s"]) < float(symptom.evidence.figures()["limit_per_s"])
    assert float(symptom.evidence.figures()["limit_per_s"]) < float(symptom.evidence.figures()["expected_per_s"])
    assert symptom.evidence.figures()["forecast by"] == "stated"


def test_a_rise_further_away_can_wait_and_one_that_is_nearer_than_an_action_takes_is_left_to_others() -> None:
    assert not split_symptoms(Says(300.0, 600.0, NOW_S + 600.0))
    assert not split_symptoms(Says(300.0, 600.0, NOW_S))


def test_a_rise_that_can_be_taken_and_a_fall_are_nobodys_business() -> None:
    assert not split_symptoms(Says(300.0, 350.0, NOW_S + 120.0))
    assert not split_symptoms(Says(300.0, 100.0, NOW_S + 120.0))


def test_no_forecast_is_used_that_is_no_better_than_a_naive_one_or_was_wrong_just_now() -> None:
    assert not split_symptoms(Says(300.0, 600.0, NOW_S + 120.0, usable=False))
    assert not split_symptoms(Says(300.0, 600.0, NOW_S + 120.0, earlier=900.0))
    assert split_symptoms(Says(300.0, 600.0, NOW_S + 120.0, earlier=350.0))


def test_what_is_far_from_anything_that_ever_came_is_not_foreseen() -> None:
    assert not split_symptoms(Says(300.0, 600.0, NOW_S + 120.0), word_count(Traffic(-600, (300.0,) * 610)))


def days(count: int, seed: int = 1) -> Traffic:
    """Every day twice the load for half an hour, which begins a quarter of an hour after now."""
    minutes = np.arange(count * DAY)
    spike = (minutes % DAY >= 15) & (minutes % DAY < 45)
    noise = np.exp(np.random.default_rng(seed).normal(0.0, 0.03, len(minutes)))
    return Traffic(round(NOW_S / MINUTE_S) - count * DAY, tuple((300.0 * (1.0 + spike) * noise).tolist()))


def test_a_spike_of_every_day_is_foreseen_and_noise_is_no_rise() -> None:
    load_ahead = coming(word_count(days(4)), 1_800.0, 0.9)
    assert load_ahead is not None
    after_s = load_ahead.times_s - NOW_S
    assert load_ahead.middle_per_s[(after_s > 1_000.0) & (after_s < 1_700.0)].min() > 450.0
    assert load_ahead.middle_per_s[after_s < 800.0].max() < 400.0
    noise = np.random.default_rng(2).normal(1.0, 0.05, 2 * DAY)
    steady = word_count(Traffic(10 - 2 * DAY, tuple((300.0 * noise).tolist())))
    assert not list(RiseDetector().detect(steady))


def test_a_forecast_is_made_once_for_the_same_history() -> None:
    traffic = days(2)
    assert forecast_of(traffic, 1_800.0, 0.9) is forecast_of(Traffic(traffic.first, traffic.per_s), 1_800.0, 0.9)


def test_a_forecast_is_made_once_in_five_minutes_although_the_last_minute_is_known_later() -> None:
    requests: set[tuple[Traffic, float]] = set()

    def counted(traffic: Traffic, horizon_s: float, confidence: float) -> Forecast:
        requests.add((traffic, traffic.end_s))
        return Says(300.0, 600.0, NOW_S)(traffic, horizon_s, confidence)

    view = word_count(SEEN.until(NOW_S - 2 * MINUTE_S))
    for later_s in range(0, 300, 10):
        traffic = view.traffic.after(NOW_S + later_s - 100.0, 10.0, 300.0)
        view = replace(view, now_s=NOW_S + later_s, traffic=traffic)
        assert coming(view, 900.0, 0.9, counted) is not None
    forecast_ends_s = sorted(end_s for _, end_s in requests)
    assert forecast_ends_s == sorted({*forecast_ends_s})
    assert forecast_ends_s[-2:] == [NOW_S - 300.0, NOW_S]


def resolved(view: View, *others: Diagnosis) -> list[float]:
    symptoms = split_symptoms(Says(300.0, 600.0, NOW_S + 120.0), view)
    diagnoses = [*AheadDiagnoser().diagnose(view, symptoms), *others]
    assert diagnoses[0].cause == RISE_AHEAD
    proposals = list(ScaleAheadResolver().resolve(view, diagnoses))
    assert all(proposal.kind == SCALE_UP and proposal.prediction is not None for proposal in proposals)
    return [proposal.patch.values[view.topology["split"].scaled_by] for proposal in proposals]


def test_it_is_sized_for_what_is_forecast_unless_there_is_trouble_or_the_model_was_wrong() -> None:
    view = word_count()
    assert resolved(view) == [7]
    assert resolved(view, Diagnosis(OVER_PROVISIONED, "lines")) == [7]
    assert resolved(view, Diagnosis(UNDER_PROVISIONED, "split")) == []
    assert resolved(replace(view, trust={"split": Trust(0.9, 3)})) == []
