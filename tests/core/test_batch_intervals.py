"""A late batch counts for the intervals that it took, and is not mixed with batches in time."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.batch_intervals import in_all, intervals, intervals_of_each, late_run, telling
from homeostat.core.view import View
from homeostat.testing import instances, observations, view_of


def batches(*seconds: float) -> View:
    """Batches with a trigger of ten seconds that took so long."""
    tasks = {"read": instances(100.0, 0.1), "count": instances([60.0, 40.0], 5.0)}
    return view_of(
        observations(len(seconds), tasks, rows=100.0, seconds=list(seconds), trigger_s=10.0, arrival_per_s=9.0)
    )


@pytest.mark.parametrize(("seconds", "count"), [(3.0, 1), (10.0, 1), (14.9, 1), (15.1, 2), (34.0, 3), (900.0, 3)])
def test_a_batch_counts_once_for_each_interval_and_three_times_at_most(seconds: float, count: int) -> None:
    view = batches(seconds)
    assert [each.intervals for each in view.current] == [each.intervals for each in view.window.observations] == [count]


def test_without_a_trigger_or_a_duration_it_counts_once() -> None:
    tasks = {"read": instances(100.0, 0.1), "count": instances(100.0, 5.0)}
    assert in_all(view_of(observations(2, tasks, arrival_per_s=9.0)).current) == 2
    assert intervals(900.0, 0.0) == intervals(float("nan"), 10.0) == intervals(float("inf"), 10.0) == 1


def test_many_batches_count_as_each_of_them_does() -> None:
    nan, inf = float("nan"), float("inf")
    seconds = np.array([3.0, 10.0, 14.9, 15.0, 15.1, 25.0, 34.0, 900.0, nan, inf, 900.0, 900.0])
    trigger_s = np.array([10.0] * 10 + [0.0, nan])
    counts = [intervals(*each) for each in zip(seconds.tolist(), trigger_s.tolist(), strict=True)]
    assert intervals_of_each(seconds, trigger_s).tolist() == counts


def test_late_batches_at_the_end_are_not_mixed_with_those_in_time() -> None:
    view = batches(9.0, 9.0, 9.0, 24.0, 31.0)
    assert late_run(view.current) == 2
    assert [o.flows[0].seconds for o in view.window.telling(3).observations] == [24.0, 31.0]


@pytest.mark.parametrize(
    ("seconds", "count"), [([9.0], 0), ([9.0, 9.0], 0), ([9.0, 9.0, 9.0, 9.0], 3), ([9.0, 16.0], 1), ([30.0] * 5, 3)]
)
def test_a_finding_needs_three_batches_or_a_late_one(seconds: list[float], count: int) -> None:
    view = batches(*seconds)
    assert telling(view.current, 3) == len(view.window.telling(3)) == count
