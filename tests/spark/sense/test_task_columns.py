"""Tasks and executors as columns."""

from __future__ import annotations

import math

from homeostat.spark.sense.rest_answers import Executor
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.task_answers import Task
from homeostat.spark.sense.task_columns import task_sample, worker_sample

EXECUTORS = [Executor("10", "b", 1, True), Executor("2", "a", 1, True), Executor("driver", "a", 0, True)]


def task(index: int, executor: str, rows: float, launched_s: float = 0.0) -> Task:
    return Task(index, executor, launched_s, launched_s + 2.0, 1.5, rows, 0.0, 0.0, 0.0)


def test_executors_with_slots_are_workers_in_the_order_of_their_numbers() -> None:
    assert worker_sample([*EXECUTORS, Executor("3", "a", 1, False)]).ids == ("2", "10")
    assert worker_sample(EXECUTORS, leaving={"10"}).ids == ("2",)


def test_a_partition_without_a_task_is_unknown() -> None:
    run = StageRun(RanStage(1, 1), 3, (task(0, "2", 10.0), task(2, "10", 30.0, launched_s=1.0)))
    sample = task_sample([run], worker_sample(EXECUTORS))
    assert (sample.rows[0], sample.rows[2]) == (10.0, 30.0)
    assert math.isnan(sample.rows[1])
    assert sample.worker.tolist() == [0, -1, 1]
    assert sample.finish_s[2] == 3.0, "since the first task of the stage began"


def test_runs_of_one_component_are_added_up() -> None:
    runs = [StageRun(RanStage(n, 1), 2, (task(0, "2", 10.0), task(1, "2", 5.0))) for n in (1, 2)]
    sample = task_sample(runs, worker_sample(EXECUTORS))
    assert sample.rows.tolist() == [20.0, 10.0]
    assert sample.run_s.tolist() == [3.0, 3.0]
