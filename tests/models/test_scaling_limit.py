"""What no number of executors can shorten."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from homeostat.core.objective import Objective
from homeostat.core.observation import Observation, StateSample
from homeostat.core.time_causes import SINK_BOUND, STATE_STORE_BOUND
from homeostat.models.scaling_limit import scaling_limit
from homeostat.testing import instances, observations, view_of
from support.timed_batches import batch, slow_sink, stage


def test_a_sink_longer_than_the_trigger_is_out_of_reach_and_named() -> None:
    limit = scaling_limit(view_of(slow_sink(12.0)))
    assert limit is not None
    assert limit.out_of_reach
    assert limit.culprit == SINK_BOUND
    assert limit.why == "the sink takes 12 s of 14.1 s"


def test_a_sink_that_leaves_time_for_the_tasks_is_not() -> None:
    limit = scaling_limit(view_of(slow_sink(6.0)))
    assert limit is not None
    assert not limit.late
    assert not limit.out_of_reach


def test_an_objective_that_allows_longer_batches_brings_it_within_reach() -> None:
    limit = scaling_limit(view_of(slow_sink(12.0), objective=Objective(lag_s=60.0)))
    assert limit is not None
    assert not limit.out_of_reach


def test_batches_as_they_are_now_fit_whatever_was_before() -> None:
    """100 rows/s arrive, and a batch of 1,000 rows takes 2.2 s of the 10 s that it may take."""
    limit = scaling_limit(view_of([*slow_sink(12.0, 9)[:6], *slow_sink(0.1, 9)[6:]]))
    assert limit is not None
    assert limit.fits(100.0, target=0.9)
    assert limit.fits(400.0, target=0.9)
    assert not limit.fits(500.0, target=0.9)


def test_two_causes_that_executors_do_not_help_explain_late_batches_together() -> None:
    """Each alone would leave 11 s of the 10 s that a batch may take; without both it takes 2 s."""
    phases_s = {"queryPlanning": 9.0, "addBatch": 2.0, "commitOffsets": 9.0}
    tasks = {"read": stage([1.0, 1.0, 1.0, 1.0], began_s=9.0)}
    limit = scaling_limit(view_of([batch(tasks, number=n, seconds=20.0, phases_s=phases_s) for n in range(1, 7)]))
    assert limit is not None
    assert limit.explained


def test_time_without_any_task_is_out_of_reach_even_if_no_metric_says_what_takes_it() -> None:
    """Sometimes the phase of the source is not reported, and then its time seems to be the driver's."""
    tasks = {"read": stage([1.0, 1.0, 1.0, 1.0], began_s=13.0)}
    phases = [{"latestOffset": 13.0, "addBatch": 2.0}, {"addBatch": 15.0}, {"walCommit": 13.0, "addBatch": 2.0}]
    late = [batch(tasks, number=n + 1, seconds=15.0, phases_s=each) for n, each in enumerate(phases)]
    limit = scaling_limit(view_of(late))
    assert limit is not None
    assert limit.out_of_reach
    assert limit.outside_s == 13.0


def slow_store(partitions: int, trigger_s: float = 10.0) -> Observation:
    """Each task spends most of its time on the commit of its state."""
    tasks = {"count": stage([9.0] * partitions, began_s=0.0)}
    rounds = -(-partitions // 2)
    state = StateSample("count", commit_s=8.0 * partitions, partitions=float(partitions))
    seconds = 9.0 * rounds
    return batch(tasks, seconds=seconds, phases_s={"addBatch": seconds}, states={"count": state}, trigger_s=trigger_s)


@pytest.mark.parametrize(("partitions", "helps"), [(2, False), (4, True)])
def test_executors_help_a_slow_store_only_if_its_tasks_wait_for_a_slot(partitions: int, helps: bool) -> None:
    each = slow_store(partitions)
    observed = [replace(each, batch=n, at_s=20.0 * n) for n in range(1, 7)]
    limit = scaling_limit(view_of(observed))
    assert limit is not None
    assert (limit.culprit, limit.workers_help) == (STATE_STORE_BOUND, helps)


def test_one_batch_without_a_metric_leaves_the_others() -> None:
    observed = [replace(each, batch=n, at_s=20.0 * n) for n, each in enumerate([slow_store(2)] * 6, start=1)]
    observed[-2] = replace(slow_store(2, math.nan), batch=5, at_s=100.0)
    limit = scaling_limit(view_of(observed))
    assert limit is not None
    assert math.isfinite(limit.without_s)


def test_a_dataflow_has_none() -> None:
    assert scaling_limit(view_of(observations(6, {"work": instances(100.0, 1.0)}))) is None


def test_executors_make_up_for_a_sink_if_the_tasks_can_become_short_enough() -> None:
    """The sink takes 4 s of 12 s, and twice the executors would win 4 s of the tasks."""
    tasks = {"read": stage([2.0] * 8, began_s=0.1)}
    phases_s = {"queryPlanning": 0.1, "addBatch": 12.0}
    made_up = scaling_limit(view_of([batch(tasks, number=n, seconds=12.1, phases_s=phases_s) for n in range(1, 7)]))
    longer = {"queryPlanning": 0.1, "addBatch": 18.0}
    too_long = scaling_limit(view_of([batch(tasks, number=n, seconds=18.1, phases_s=longer) for n in range(1, 7)]))
    assert made_up is not None
    assert too_long is not None
    assert made_up.culprit == too_long.culprit == SINK_BOUND
    assert made_up.can_make_up
    assert not made_up.explained
    assert not too_long.can_make_up
