"""When rows arrived, from a few moments at which the end of a partition was known."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.spark.sense.arrival_times import KEPT, ArrivalTimes


def steady(per_s: float = 10.0, moments: int = 11) -> ArrivalTimes:
    times = ArrivalTimes()
    for second in range(moments):
        times.add(float(second), per_s * second)
    return times


def test_the_lag_is_the_age_of_the_next_row() -> None:
    times = steady()
    assert times.lag_s(50.0, now_s=10.0) == pytest.approx(5.0)
    assert times.lag_s(100.0, now_s=10.0) == 0.0
    assert math.isnan(ArrivalTimes([5.0], [100.0]).lag_s(50.0, 10.0))


def test_an_earlier_moment_tells_how_old_a_backlog_is() -> None:
    times = ArrivalTimes([100.0], [1_000.0])
    assert times.doubt(500.0) is None
    times.add(0.0, 0.0)
    assert times.doubt(500.0) == (0.0, 100.0)
    times.add(50.0, 900.0)
    assert times.doubt(500.0) == (0.0, 50.0)
    assert times.lag_s(900.0, 100.0) == pytest.approx(50.0)


def test_a_topic_that_begins_anew_forgets_its_old_offsets() -> None:
    times = steady()
    times.add(11.0, 3.0)
    assert times.ends == [3.0]
    assert math.isnan(times.rate_per_s(11.0, 10.0))


def test_the_rate_is_that_of_the_last_seconds() -> None:
    times = steady()
    for second in range(11, 21):
        times.add(float(second), 100.0)
    assert times.rate_per_s(20.0, 10.0) == pytest.approx(0.0)
    assert times.rate_per_s(20.0, 20.0) == pytest.approx(5.0)
    assert times.end_at(4.5) == pytest.approx(45.0)
    assert math.isnan(times.end_at(-1.0))


@given(st.lists(st.tuples(st.floats(0, 1e6), st.floats(0, 1e9)), min_size=1, max_size=60), st.floats(0, 1e9))
def test_whatever_comes_in_moments_and_ends_stay_in_order(looks: list[tuple[float, float]], offset: float) -> None:
    times = ArrivalTimes()
    for at_s, end in looks:
        times.add(at_s, end)
    assert times.moments_s == sorted(times.moments_s)
    assert times.ends == sorted(times.ends)
    arrived_s = times.arrived_s(offset)
    assert math.isnan(arrived_s) or times.moments_s[0] <= arrived_s <= times.moments_s[-1]


def test_old_moments_are_thinned_out() -> None:
    times = steady(moments=5 * KEPT)
    assert len(times.ends) <= KEPT
    assert times.lag_s(10.0 * (5 * KEPT - 61), now_s=5.0 * KEPT - 1) == pytest.approx(60.0)
