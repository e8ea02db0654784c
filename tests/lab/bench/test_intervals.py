"""How sure a number is: the interval of a median, and shares."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.lab.bench.intervals import median_interval, share


def test_ten_values_leave_out_the_outermost() -> None:
    interval = median_interval([10, 3, 1, 4, 9, 2, 6, 5, 8, 7])
    assert (interval.low, interval.median, interval.high) == (2, 5.5, 9)
    assert interval.coverage == pytest.approx(0.978515625)


@pytest.mark.parametrize(("count", "coverage"), [(1, 0.0), (2, 0.5), (5, 0.9375)])
def test_too_few_values_say_how_little_they_cover(count: int, coverage: float) -> None:
    interval = median_interval([float(number) for number in range(count)])
    assert (interval.low, interval.high, interval.coverage) == (0.0, count - 1, coverage)


def test_the_interval_holds_the_true_median_as_often_as_it_says() -> None:
    random = np.random.default_rng(1)
    intervals = [median_interval(random.exponential(size=12).tolist()) for _ in range(2000)]
    held = np.mean([each.low <= np.log(2) <= each.high for each in intervals])
    assert held == pytest.approx(intervals[0].coverage, abs=0.015)


@pytest.mark.parametrize("successes", [0, 10, 20])
def test_a_share_lies_in_its_interval(successes: int) -> None:
    result = share(successes, 20)
    low, high = result["interval"]
    assert 0 <= low <= result["share"] <= high <= 1


def test_no_trials_give_no_share() -> None:
    assert share(0, 0)["share"] is None
    assert share(0, 0)["interval"] == [0.0, 1.0]
