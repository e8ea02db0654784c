"""What several remedies gain together."""

from __future__ import annotations

import math

import pytest

from homeostat.core.configuration import EXECUTORS_KNOB, PARALLELISM, Knob
from homeostat.models.combined import Mends, combined_gain
from homeostat.testing import instances, observations, view_of
from support.stages import batches


def test_the_bottleneck_of_a_dataflow_decides_before_and_after() -> None:
    """Count takes 500/s and split 1,000/s: twice the counters double what passes, four times gain no more."""
    tasks = {
        "lines": instances(5000.0, 0.25),
        "split": instances(5000.0, 5.0, pressured_s=9.5),
        "count": instances(5000.0, 10.0, pressured_s=9.5),
    }
    view = view_of(observations(10, tasks, arrival_per_s=500.0))
    twice, four_times = ({Knob(PARALLELISM, "count"): count} for count in (2, 4))
    assert combined_gain(view, Mends(values=twice)) == pytest.approx(math.log(2.0))
    assert combined_gain(view, Mends(values=four_times)) == pytest.approx(math.log(2.0))


def test_a_batch_is_replayed_on_the_executors_of_the_plan() -> None:
    view = batches(120.0)
    more = {EXECUTORS_KNOB: 2 * int(view.configuration[EXECUTORS_KNOB])}
    assert combined_gain(view, Mends()) == 0.0
    assert 0.0 < combined_gain(view, Mends(values=more)) <= math.log(2.0)


def test_without_measurements_the_gain_is_unknown() -> None:
    assert math.isnan(combined_gain(view_of(()), Mends()))
