"""What arrived, minute by minute."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.traffic import KEPT, MINUTE_S, Traffic, traffic_of


def test_observations_of_a_minute_become_its_mean() -> None:
    traffic = traffic_of([(20.0, 20.0, 100.0), (60.0, 40.0, 400.0), (70.0, 10.0, 7.0)])
    assert traffic.per_s == pytest.approx((300.0,))
    assert (traffic.first, traffic.end_s) == (0, 60.0)
    assert (traffic.rows, traffic.seconds) == (70.0, 10.0)


def test_a_long_batch_speaks_for_every_minute_it_took_and_a_gap_for_none() -> None:
    traffic = traffic_of([(60.0, 60.0, 10.0), (300.0, 240.0, 20.0), (600.0, 60.0, 30.0), (601.0, 1.0, 1.0)])
    rates = [value for value in traffic.per_s if not math.isnan(value)]
    assert traffic.per_s[:5] == pytest.approx((10.0, 20.0, 20.0, 20.0, 20.0))
    assert [math.isnan(value) for value in traffic.per_s[5:9]] == [True] * 4
    assert rates[-1] == 30.0


def test_what_is_late_or_unknown_adds_nothing() -> None:
    traffic = traffic_of([(600.0, 60.0, 10.0)])
    assert traffic.after(100.0, 10.0, 5.0) == traffic
    assert traffic.after(601.0, 10.0, math.nan) == traffic


def test_a_clock_that_jumps_by_years_begins_anew() -> None:
    traffic = traffic_of([(60.0, 60.0, 10.0), (1e9, 10.0, 20.0)])
    assert traffic.per_s == ()
    assert traffic.seconds == 10.0


def test_several_sources_are_kept_apart_and_one_is_the_whole() -> None:
    apart = {"clicks": 30.0, "orders": 10.0}
    partly = {**apart, "orders": math.nan}
    first = traffic_of([(60.0, 60.0, 40.0, apart), (120.0, 60.0, math.nan, partly)])
    traffic = first.after(180.0, 60.0, 40.0, apart).after(181.0, 1.0, 40.0, apart)
    assert traffic.sources["clicks"].per_s == (30.0, 30.0, 30.0)
    assert traffic.sources["orders"].per_s[0] == 10.0
    assert math.isnan(traffic.sources["orders"].per_s[1])
    assert traffic.per_s[0] == 40.0
    assert traffic_of([(60.0, 60.0, 40.0, {"clicks": 40.0}), (61.0, 1.0, 40.0, {"clicks": 40.0})]).sources == {}
    assert traffic.until(60.0).sources == {}


def test_a_source_that_is_gone_is_forgotten_once_its_minutes_would_be() -> None:
    traffic = traffic_of([(60.0, 60.0, 40.0, {"clicks": 30.0, "orders": 10.0})])
    later = traffic.after(3_600.0, 60.0, 30.0, {"clicks": 30.0})
    assert set(later.sources) == {"clicks", "orders"}
    last = later.after(KEPT * MINUTE_S + 3_600.0, 60.0, 30.0, {"clicks": 30.0})
    assert set(last.sources) == {"clicks"}


def test_only_whole_minutes_before_a_moment_count() -> None:
    traffic = Traffic(10, (1.0, 2.0, 3.0))
    assert traffic.until(12.0 * MINUTE_S).per_s == (1.0, 2.0)
    assert traffic.until(0.0).per_s == ()
    assert traffic.until(1e9).per_s == traffic.per_s


@given(st.lists(st.tuples(st.floats(0.1, 400.0), st.floats(0.0, 1e6)), min_size=1, max_size=60))
def test_no_minute_has_more_or_less_than_was_ever_seen(steps: list[tuple[float, float]]) -> None:
    now_s, observed = 0.0, []
    for span_s, per_s in steps:
        now_s += span_s
        observed.append((now_s, span_s, per_s))
    rates = [per_s for _, _, per_s in observed]
    traffic = traffic_of(observed)
    assert len(traffic.per_s) <= KEPT
    assert traffic.end_s <= now_s + 1e-3
    assert all(min(rates) * 0.999 - 1e-9 <= value <= max(rates) * 1.001 + 1e-9 for value in traffic.per_s)
