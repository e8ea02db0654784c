"""Tasks of a batch, by component."""

from __future__ import annotations

from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.progress import read_progress
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.stage_reader import GraphReader, StageReader
from support.rest_server import executor, job, progress, rest_answering, stage


def reader(rest: RestClient, graph_of: GraphReader | None = None) -> tuple[StageReader, QueryBook, GuardedWork]:
    book = QueryBook(lambda: [QueryHandle("words", "run-1")], lambda reason: None)
    guard = GuardedWork(lambda event: None, lambda: 0.0)
    executors = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: None, tuple)
    return StageReader(rest, book, executors, guard, graph_of), book, guard


def test_tasks_are_read_by_component_with_the_executor_that_ran_them() -> None:
    answers = {"jobs": [job(0, 4, stages=(1,))], "stages/1": [stage(1, executor="9")], "allexecutors": [executor("9")]}
    with rest_answering(answers) as rest:
        stages, book, guard = reader(rest)
        (run,) = book.running()
        assert stages.tasks(run, read_progress(progress(4))).samples == {}, "the REST API is not known to answer"
        guard.spark_answers = True
        (sample,) = stages.tasks(run, read_progress(progress(4))).samples.values()
    assert sample.rows.tolist() == [10.0]
    assert sample.worker.tolist() == [0]


def test_a_graph_is_read_once_per_stage() -> None:
    read: list[int] = []

    def graph_of(number: int) -> StageGraph | None:
        read.append(number)
        return StageGraph((), frozenset({number})) if number else None

    stages, _, _ = reader(RestClient("http://127.0.0.1:1"), graph_of)
    assert stages.graph(3) == stages.graph(3) == StageGraph((), frozenset({3}))
    assert stages.graph(0) is None
    assert read == [3, 0]
