"""Late batches count several times right after a change; batches in time count once."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.late_batches import compares_instances, weight, weighted_count, with_late_batches
from homeostat.core.view import View
from homeostat.detectors.instance_skew import SpeedSkewDetector
from homeostat.detectors.pressure import PressureDetector
from homeostat.testing import instances, observations, view_of


def batches(*seconds: float) -> View:
    """Batches with a trigger of ten seconds that took so long."""
    tasks = {"read": instances(100.0, 0.1), "count": instances([60.0, 40.0], 5.0)}
    return view_of(
        observations(len(seconds), tasks, rows=100.0, seconds=list(seconds), trigger_s=10.0, arrival_per_s=9.0)
    )


@pytest.mark.parametrize(("seconds", "count"), [(3.0, 1), (10.0, 1), (19.9, 1), (20.0, 2), (34.0, 3), (900.0, 3)])
def test_a_batch_counts_once_for_each_whole_interval_and_three_times_at_most(seconds: float, count: int) -> None:
    (digest,) = batches(seconds).current
    assert weight(digest) == count


def test_without_a_trigger_or_a_duration_it_counts_once() -> None:
    tasks = {"read": instances(100.0, 0.1), "count": instances(100.0, 5.0)}
    assert weighted_count(view_of(observations(2, tasks, arrival_per_s=9.0)).current) == 2


def test_a_late_batch_stands_as_often_as_it_counts_with_the_rows_that_it_had() -> None:
    view = batches(34.0)
    late_view = with_late_batches(view, least=3)
    assert len(late_view.current) == len(late_view.window) == 3
    assert late_view.flow("rows").tolist() == [100.0] * 3
    assert late_view.flow("seconds").tolist() == [34.0] * 3
    assert late_view.window.tasks("count", "rows").tolist() == [[60.0, 40.0]] * 3
    ends_s = [observation.at_s for observation in late_view.window.observations]
    assert ends_s[-1] == view.window.observations[-1].at_s
    assert (np.diff(ends_s) > 0).all()
    assert sum(digest.span_s for digest in late_view.current) == pytest.approx(view.current[0].span_s)


def test_nothing_changes_where_batches_end_in_time_or_enough_were_seen() -> None:
    in_time, enough = batches(9.0, 9.0), batches(40.0, 40.0, 40.0)
    assert with_late_batches(in_time, least=3) is in_time
    assert with_late_batches(enough, least=3) is enough


def test_one_late_batch_says_little_about_executors() -> None:
    assert compares_instances(SpeedSkewDetector())
    assert not compares_instances(PressureDetector())
