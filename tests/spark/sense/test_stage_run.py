"""A stage with the attempts at its tasks."""

from __future__ import annotations

import math

from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import stage_run
from homeostat.spark.sense.task_answers import OtherAttempt, Task, TaskList

NAN = math.nan


def task(index: int, partition: int, executor: str = "1") -> Task:
    return Task(index, executor, 10.0, 12.0, 1.5, 5.0, 0.0, 0.0, 0.0, partition=partition)


def test_a_second_attempt_at_a_stage_counts_by_partition() -> None:
    first = TaskList((task(0, 0), task(1, 1), task(2, 2)), (OtherAttempt(3, 3, 2.0, "FetchFailed"),))
    second = TaskList((task(0, 1, "2"), task(1, 3, "2")))
    run = stage_run(RanStage(1, 1), 4, [first, second], NAN, NAN, 100)
    assert [(each.index, each.executor) for each in run.tasks] == [(0, "1"), (1, "2"), (2, "1"), (3, "2")]
    assert dict(run.attempts) == {0: 1, 1: 2, 2: 1, 3: 2}
    assert [failure.index for failure in run.failures] == [3]
    assert (run.began_s, run.ended_s) == (10.0, 12.0)


def test_an_attempt_that_was_killed_is_no_failure() -> None:
    copies = TaskList((task(0, 0),), (OtherAttempt(0, 0, 3.0),))
    run = stage_run(RanStage(1, 1), 1, [copies], 9.5, 12.5, 100)
    assert (dict(run.attempts), run.failures) == ({0: 2}, ())
    assert (run.began_s, run.ended_s) == (9.5, 12.5)


def test_tasks_that_were_not_read_are_counted_in_a_stage_with_too_many() -> None:
    assert stage_run(RanStage(1, 1), 5, [TaskList((task(0, 0),))], NAN, NAN, 4).left_out == 4
    assert stage_run(RanStage(1, 1), 5, [TaskList((task(0, 0),))], NAN, NAN, 5).left_out == 0
