"""Headroom by risk, from made histories: a restless load gets more of it, and so does a dearer violation."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.configuration import Capabilities, Configuration, Knob, KnobSpec
from homeostat.core.digest import Digest
from homeostat.core.observation import NAN, Array
from homeostat.core.topology import Component, Topology
from homeostat.core.traffic import Traffic
from homeostat.core.view import View
from homeostat.models.headroom import cheapest_growth, growth, lead_s, until_growth_s

EXECUTORS = Knob("executors", "app")


def view(rates: Array, violation_cost: float = 20.0, traffic: Traffic | None = None, apply_s: float = 40.0) -> View:
    history = tuple(
        Digest(10.0 * (n + 1), 10.0, n, 0, 10.0 * rate, 5.0, 10.0, rate, 0.0, NAN)
        for n, rate in enumerate(rates.tolist())
    )
    return View(
        now_s=10.0 * len(rates),
        topology=Topology((Component("lines", "source", EXECUTORS),)),
        configuration=Configuration({EXECUTORS: 10}),
        capabilities=Capabilities({EXECUTORS: KnobSpec(cost=1.0, apply_s=apply_s)}),
        history=history,
        traffic=traffic or Traffic(),
        violation_cost=violation_cost,
    )


def noisy(sigma: float, count: int = 1_500) -> Array:
    return np.asarray(1_000.0 * np.exp(np.random.default_rng(1).normal(0.0, sigma, count)))


def test_without_a_price_of_violations_there_is_no_growth_to_plan_for() -> None:
    assert growth(view(noisy(0.2), violation_cost=0.0)) == 1.0


def test_a_restless_load_gets_more_headroom_than_a_calm_one() -> None:
    calm, restless = growth(view(noisy(0.02))), growth(view(noisy(0.2)))
    assert 1.0 < calm < 1.3
    assert restless > 1.5


def test_the_dearer_a_violation_the_more_headroom() -> None:
    factors = [growth(view(noisy(0.1), violation_cost=cost)) for cost in (0.1, 1.0, 20.0)]
    assert factors == sorted(factors)
    assert factors[0] < factors[-1]


def test_the_longer_a_change_takes_the_more_may_arrive_before_it() -> None:
    steps = np.random.default_rng(2).normal(0.0, 0.02, 1_500)
    drifting = np.asarray(1_000.0 * np.exp(np.cumsum(steps)))
    quick, slow = view(drifting, apply_s=10.0), view(drifting, apply_s=300.0)
    assert lead_s(quick, 10.0) == pytest.approx(40.0)
    assert growth(slow) > growth(quick)


def test_with_little_history_growth_as_usual_is_assumed() -> None:
    assert 1.2 < growth(view(np.full(3, 1_000.0))) < 1.8
    # A load that has been steady for hours needs next to nothing.
    assert growth(view(np.full(2_000, 1_000.0), violation_cost=1.0)) < 1.2


def test_a_load_that_calmed_down_goes_by_its_calm_times() -> None:
    burst_then_calm = np.concatenate([noisy(0.3, 700), noisy(0.02, 700)])
    assert growth(view(burst_then_calm)) < growth(view(burst_then_calm[::-1].copy()))


def test_a_rise_at_this_time_of_earlier_days_counts() -> None:
    """The load doubles at the same minute every day. That minute comes next, or was half a day ago."""
    day = np.where(np.arange(1440) < 720, 1_000.0, 2_000.0)
    minutes = tuple(np.tile(day, 6).tolist())

    def at(first: int) -> float:
        return growth(view(np.full(300, 1_000.0), violation_cost=500.0, traffic=Traffic(first, minutes)))

    before_the_rise = 50 + 1 - 720 - 1440 * 5  # now is minute 50, and the rise is at the next one
    assert at(before_the_rise) > at(before_the_rise + 360)


def test_a_calm_history_counts_although_the_application_has_just_started() -> None:
    rates = np.full(3, 1_000.0)
    calm = Traffic(-600, (1_000.0,) * 600)
    bursty = Traffic(-600, tuple((1_000.0 * (1.0 + (np.arange(600) % 20 == 7))).tolist()))
    unknown, known_calm, known_bursty = (growth(view(rates, 50.0, each)) for each in (Traffic(), calm, bursty))
    assert known_calm < unknown < known_bursty


@given(st.lists(st.tuples(st.floats(-1.0, 1.0), st.floats(0.01, 1.0)), min_size=1, max_size=30), st.floats(0.01, 100.0))
def test_no_other_headroom_costs_less(samples: list[tuple[float, float]], violation_cost: float) -> None:
    growths, weights = np.array(samples).T

    def cost(headroom: float) -> float:
        return math.exp(headroom) + violation_cost * float(weights[growths > headroom].sum() / weights.sum())

    cheapest = cheapest_growth(growths, weights, violation_cost)
    assert cheapest >= 0.0
    assert cost(cheapest) <= min(cost(each) for each in (0.0, *np.maximum(growths, 0.0).tolist())) + 1e-9


def test_the_time_until_the_load_comes_back_is_that_of_its_own_history() -> None:
    """A wave comes back within its two hours, or not at all near its top. A steady load never does."""
    minutes = np.arange(600)
    wave = Traffic(-600, tuple((1_000.0 * np.exp(0.5 * np.sin(2.0 * math.pi * minutes / 120.0))).tolist()))
    steady = Traffic(-600, (1_000.0,) * 600)
    rates = np.full(30, 1_000.0)
    soon, never = (until_growth_s(view(rates, traffic=each), 0.4) for each in (wave, steady))
    assert 600.0 < soon < 0.7 * never
    assert until_growth_s(view(rates, traffic=wave), 0.1) < soon


def test_without_a_history_more_room_lasts_longer() -> None:
    rates = np.full(3, 1_000.0)
    assert until_growth_s(view(rates), 0.1) < until_growth_s(view(rates), 0.4)
    assert until_growth_s(view(rates), 0.0) == 0.0
