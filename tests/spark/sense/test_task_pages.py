"""The tasks of a huge stage: bounded in requests and memory, and what was left out is told."""

from __future__ import annotations

import tracemalloc
from contextlib import closing
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import pytest

from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.jobs import JobBook, read_stages
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.progress import read_progress
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.stage_reader import StageReader
from homeostat.spark.sense.task_pages import MOST_TASKS, PAGE_TASKS
from support.rest_server import executor, job, progress, rest_computing, stage

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

BELOW = "/api/v1/applications/app-1/"


class HugeStage:
    """A server that answers like Spark about one stage with this many tasks on this many executors."""

    def __init__(self, tasks: int, executors: int = 8) -> None:
        self.tasks, self.executors = tasks, executors
        self.paths: list[str] = []

    def answer(self, url: str) -> Any:
        path, options = urlsplit(url).path.removeprefix(BELOW), parse_qs(urlsplit(url).query)
        self.paths.append(path)
        if path == "jobs":
            return [{**job(0, 4, stages=(1,)), "numTasks": self.tasks}]
        if path == "stages/1":
            assert options["details"] == ["false"], "all tasks at once"
            return [{**stage(1), "numTasks": self.tasks, "numCompleteTasks": self.tasks, "tasks": {}}]
        if path == "stages/1/0/taskList":
            first, length = int(options["offset"][0]), int(options["length"][0])
            return [self._task(index) for index in range(first, min(first + length, self.tasks))]
        if path == "allexecutors":
            return [executor(str(number)) for number in range(self.executors)]
        return None

    def _task(self, index: int) -> Any:
        return {**stage(1)["tasks"]["7"], "index": index, "executorId": str(index % self.executors)}


@pytest.mark.parametrize(("tasks", "pages"), [(5_000, 6), (100_000, MOST_TASKS // PAGE_TASKS)])
def test_a_huge_stage_is_read_in_few_pages_that_are_spread_over_it(tasks: int, pages: int) -> None:
    huge = HugeStage(tasks)
    with rest_computing(huge.answer) as rest:
        book = JobBook(rest)
        book.follow()
        (run,) = read_stages(rest, book.of_batch("run-1", 4), lambda number: None)
    assert huge.paths.count("stages/1/0/taskList") == pages
    assert (run.partitions, run.left_out) == (tasks, max(0, tasks - MOST_TASKS))
    assert len(run.tasks) == tasks - run.left_out
    assert (run.tasks[0].index, run.tasks[-1].index) == (0, tasks - 1)


@pytest.mark.slow
def test_a_hundred_thousand_tasks_on_two_thousand_executors_stay_within_a_bound_on_memory() -> None:
    huge = HugeStage(100_000, executors=2_000)
    with rest_computing(huge.answer) as rest:
        book = QueryBook(lambda: [QueryHandle("words", "run-1")], lambda reason: None)
        guard = GuardedWork(lambda event: None, lambda: 0.0)
        executors = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: None, tuple)
        reader = StageReader(rest, book, executors, guard, None)
        guard.spark_answers = True
        (run,) = book.running()
        tracemalloc.start()
        tasks = reader.tasks(run, read_progress(progress(4)))
        _, peak_bytes = tracemalloc.get_traced_memory()
        tracemalloc.stop()
    ((component, sample),) = tasks.samples.items()
    assert sample.instances == 100_000
    assert tasks.left_out == {component: 80_000}
    assert len(executors.workers.ids) == 2_000
    # All tasks in one answer took 719 MB. The server of this test is part of what is measured.
    assert peak_bytes < 60_000_000


def test_spark_gives_every_task_of_a_large_stage_in_pages(spark: SparkSession) -> None:
    spark.range(0, 3_500, 1, 3_500).write.format("noop").mode("overwrite").save()
    dates_s: list[float] = []
    with closing(RestClient(str(spark.sparkContext.uiWebUrl), spark.sparkContext.applicationId)) as rest:
        rest.on_date = dates_s.append
        job_of_all = max(rest.jobs(), key=lambda each: each.id)
        (run,) = read_stages(rest, [job_of_all], lambda number: None)
    assert job_of_all.tasks == run.partitions == 3_500
    assert [task.index for task in run.tasks] == list(range(3_500))
    assert run.left_out == 0
    assert dates_s, "Spark says what time it is"
