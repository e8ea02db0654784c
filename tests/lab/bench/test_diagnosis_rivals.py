"""The rules of others: what each says of a batch that is just above and just below its thresholds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.causes import DATA_SKEW, SLOW_INSTANCE, SOURCE_SKEW, UNDER_PROVISIONED
from homeostat.core.observation import FileSample, TaskCosts, TaskFailure, TaskSample
from homeostat.core.time_causes import (
    FAILING_TASKS,
    GC_BOUND,
    SHUFFLE_BOUND,
    SLOW_HOST,
    SMALL_FILES,
    SPILLING,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.core.view import View
from homeostat.lab.bench.diagnosis_rivals import MIB, MaxMedianRule, SparkForensicsThresholds, rival_policies
from homeostat.policies import registry
from homeostat.testing.builders import instances, observations, view_of
from homeostat.testing.plugins import check_diagnoser
from homeostat.testing.sample_views import sample_views

MAX_MEDIAN, FORENSICS = MaxMedianRule(), SparkForensicsThresholds()


def named(rival: MaxMedianRule | SparkForensicsThresholds, view: View) -> list[tuple[str, str]]:
    return [(diagnosis.cause, diagnosis.component) for diagnosis in rival.diagnose(view, ())]


def batch(count: TaskSample, read: TaskSample | None = None, executors: int = 4, seconds: float = 8.0) -> View:
    tasks = {"read": read if read is not None else instances([100.0] * 4, 1.0, finish_s=1.0), "count": count}
    return view_of(observations(1, tasks, executors=executors, seconds=seconds, trigger_s=10.0))


def with_costs(count: int, run_s: float = 2.0, **costs: float) -> View:
    given_costs = {name: np.full(count, value) for name, value in costs.items()}
    sample = replace(
        instances([100.0] * count, run_s, finish_s=1.0), costs=replace(TaskCosts.unknown(count), **given_costs)
    )
    return batch(sample)


@pytest.mark.parametrize("rival", [MAX_MEDIAN, FORENSICS], ids=lambda rival: rival.name)
def test_a_rival_is_a_plug_in_that_keeps_the_rules(rival: MaxMedianRule | SparkForensicsThresholds) -> None:
    for view in sample_views().values():
        assert {cause for cause, _ in named(rival, view)} <= rival.claims
    check_diagnoser(rival)


def test_the_slowest_task_against_the_median_is_skew_if_it_has_the_rows_and_a_slow_executor_otherwise() -> None:
    assert named(MAX_MEDIAN, batch(instances([300.0, 100, 100, 100], [2.1, 1, 1, 1], finish_s=1.0))) == [
        (DATA_SKEW, "count")
    ]
    assert named(MAX_MEDIAN, batch(instances([100.0] * 4, [2.1, 1, 1, 1], finish_s=1.0))) == [(SLOW_INSTANCE, "count")]
    assert named(MAX_MEDIAN, batch(instances([300.0, 100, 100, 100], [2.0, 1, 1, 1], finish_s=1.0))) == []
    at_the_source = instances([300.0, 100, 100, 100], [2.1, 1, 1, 1], finish_s=1.0)
    assert named(MAX_MEDIAN, batch(instances([100.0] * 4, 1.0, finish_s=1.0), at_the_source)) == [(SOURCE_SKEW, "read")]


def test_a_late_batch_of_even_tasks_is_short_of_executors() -> None:
    assert named(MAX_MEDIAN, batch(instances([100.0] * 4, 1.0, finish_s=1.0), seconds=11.0)) == [
        (UNDER_PROVISIONED, "")
    ]


def test_skew_is_the_longest_of_few_tasks_and_the_95th_percentile_of_many() -> None:
    assert (DATA_SKEW, "count") in named(FORENSICS, batch(instances([100.0] * 4, [3.1, 1, 1, 1], finish_s=1.0)))
    assert (DATA_SKEW, "count") not in named(FORENSICS, batch(instances([100.0] * 4, [3.0, 1, 1, 1], finish_s=1.0)))
    one_of_forty = instances([100.0] * 40, [9.0, *[0.9] * 39], finish_s=1.0)
    assert named(FORENSICS, batch(one_of_forty, executors=2)) == [], "one long task of forty is not the 95th percentile"
    assert named(FORENSICS, batch(instances([100.0] * 4, [0.04, 0.01, 0.01, 0.01], finish_s=1.0))) == [], (
        "30 ms are less than 0.5 % of the batch"
    )


def test_a_slow_executor_needs_three_executors_and_fifteen_tasks() -> None:
    run_s = [1.4 if number % 4 == 0 else 1.0 for number in range(16)]
    assert named(FORENSICS, batch(instances([100.0] * 16, run_s, finish_s=1.0))) == [(SLOW_INSTANCE, "count")]
    assert named(FORENSICS, batch(instances([100.0] * 12, run_s[:12], finish_s=1.0))) == []
    twice_s = [2.1 if number % 4 == 0 else 1.0 for number in range(16)]
    assert named(FORENSICS, batch(instances([100.0] * 16, twice_s, finish_s=1.0))) == [(SLOW_HOST, "count")]


@pytest.mark.parametrize(
    ("view", "cause"),
    [
        (with_costs(8, gc_s=0.3), GC_BOUND),
        (with_costs(8, spilled_memory_bytes=1.0), SPILLING),
        (with_costs(8, shuffle_read_bytes=7 * MIB), SHUFFLE_BOUND),
        (with_costs(4, shuffle_read_bytes=300 * MIB), TOO_FEW_PARTITIONS),
        (batch(instances([1.0] * 100, 0.4, finish_s=1.0)), TINY_TASKS),
    ],
)
def test_what_tasks_spend_is_compared_with_the_published_thresholds(view: View, cause: str) -> None:
    assert (cause, "count") in named(FORENSICS, view)


@pytest.mark.parametrize(
    "view",
    [
        with_costs(8, gc_s=0.19),
        with_costs(8, run_s=0.5, gc_s=0.3),
        with_costs(8, shuffle_read_bytes=6 * MIB),
        batch(instances([1.0] * 99, 0.4, finish_s=1.0)),
    ],
)
def test_below_the_thresholds_nothing_is_said(view: View) -> None:
    assert named(FORENSICS, view) == []


def test_failed_attempts_and_small_files_are_counted() -> None:
    view = with_costs(20, failed_s=0.1)
    observation = view.window.observations[0]
    once = replace(observation, failures=(TaskFailure("count", 0, "lost", 1),))
    twice = replace(observation, failures=(TaskFailure("count", 0, "lost", 2),))
    files = replace(observation, files=FileSample(read=101, read_bytes=101 * MIB))
    assert named(FORENSICS, view_of([once])) == [], "one of twenty is not more than 5 %"
    assert named(FORENSICS, view_of([twice])) == [(FAILING_TASKS, "count")]
    assert named(FORENSICS, view_of([files])) == [(SMALL_FILES, "")]


def test_rivals_only_look() -> None:
    for name, policy in rival_policies().items():
        assert name not in registry.names()
        assert policy.resolvers == ()
