"""What tasks spent their time on, as columns."""

from __future__ import annotations

import numpy as np

from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.task_answers import OtherAttempt, Task, TaskCost
from homeostat.spark.sense.task_costs import task_costs


def run(*tasks: tuple[int, TaskCost], partitions: int = 3, failures: tuple[OtherAttempt, ...] = ()) -> StageRun:
    read = tuple(Task(index, "1", 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 0.0, cost) for index, cost in tasks)
    attempts = {index: 1 + sum(failure.index == index for failure in failures) for index, _ in tasks}
    return StageRun(RanStage(1, 1), partitions, read, attempts=attempts, failures=failures)


def test_a_task_that_was_not_read_has_unknown_costs() -> None:
    costs = task_costs([run((0, TaskCost(cpu_s=1.0)), (2, TaskCost(cpu_s=3.0)))], 3)
    np.testing.assert_array_equal(costs.cpu_s, [1.0, np.nan, 3.0])
    np.testing.assert_array_equal(costs.attempts, [1.0, np.nan, 1.0])
    assert np.isnan(costs.gc_s).all()


def test_failed_attempts_count_with_their_time() -> None:
    failures = (OtherAttempt(0, 0, 2.0, "no"), OtherAttempt(0, 0, 3.0, "no"))
    costs = task_costs([run((0, TaskCost()), (1, TaskCost()), failures=failures)], 3)
    np.testing.assert_array_equal(costs.attempts, [3.0, 1.0, np.nan])
    np.testing.assert_array_equal(costs.failed_s, [5.0, 0.0, np.nan])


def test_runs_are_added_up_but_not_their_memory_nor_their_first_attempts() -> None:
    cost = TaskCost(cpu_s=1.0, peak_memory_bytes=10.0, locality=1.0)
    larger = TaskCost(cpu_s=2.0, peak_memory_bytes=30.0, locality=0.0)
    costs = task_costs([run((0, cost)), run((0, larger), (1, larger), failures=(OtherAttempt(1, 1, 0.5, "no"),))], 3)
    np.testing.assert_array_equal(costs.cpu_s, [3.0, 2.0, np.nan])
    np.testing.assert_array_equal(costs.peak_memory_bytes, [30.0, 30.0, np.nan])
    np.testing.assert_array_equal(costs.locality, [1.0, 0.0, np.nan])
    np.testing.assert_array_equal(costs.attempts, [1.0, 2.0, np.nan])
