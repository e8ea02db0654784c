"""How fast each worker was beside its peers."""

from __future__ import annotations

import pytest

from homeostat.core.observation import Observation, TaskSample
from homeostat.core.worker_pace import paces
from homeostat.testing import instances, observations


def dataflow(*samples: TaskSample) -> tuple[Observation, ...]:
    return observations(len(samples), lambda n: {"count": samples[n]})


def batches(*samples: TaskSample, executors: int = 3) -> tuple[Observation, ...]:
    return observations(len(samples), lambda n: {"count": samples[n]}, executors=executors, seconds=3.0, trigger_s=5.0)


EVEN = instances([50.0, 50.0, 50.0], 5.0, finish_s=5.0)
ODD = instances([50.0, 50.0, 50.0], [20.0, 5.0, 5.0], finish_s=20.0)


def test_one_that_takes_twice_as_long_for_a_row_is_twice_as_slow_though_it_takes_fewer_of_them() -> None:
    pace_by_worker = paces(dataflow(*[instances([25.0, 50.0, 50.0], 5.0)] * 3))
    assert pace_by_worker["count-0"] == pytest.approx(2.0)
    assert max(pace_by_worker["count-1"], pace_by_worker["count-2"]) <= 1.0


def test_a_task_with_few_rows_is_not_slow() -> None:
    pace_by_worker = paces(batches(*[instances([2.0, 50.0, 50.0], [4.0, 5.0, 5.0], finish_s=5.0)] * 3))
    assert pace_by_worker["exec-0"] < 1.0


def test_a_moment_is_not_typical() -> None:
    assert paces(batches(EVEN, ODD, EVEN))["exec-0"] == pytest.approx(1.0)
    assert paces(batches(EVEN, ODD, ODD))["exec-0"] == pytest.approx(4.0)


def test_nothing_is_known_of_those_that_did_nothing_or_are_gone() -> None:
    two = instances([50.0, 50.0], 5.0, finish_s=5.0)
    assert paces(batches(EVEN, two)).keys() == {"exec-0", "exec-1", "exec-2"}
    assert paces(batches(two, two)).keys() == {"exec-0", "exec-1"}
    assert paces((*batches(EVEN), *batches(two, executors=2))).keys() == {"exec-0", "exec-1"}
    assert paces(()) == {}
