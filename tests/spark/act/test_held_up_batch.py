"""A batch that only waits for a slow executor: others do its tasks again if that is sooner."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import Thread
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.lab.faults import SlowExecutor
from homeostat.lab.wordcount import worker
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors
from homeostat.spark.act.held_up_batch import HeldUpBatch, HeldUpStage, ends_sooner_elsewhere

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LIMIT_S = 120.0
FACTOR = 6.0
WAIT_S = 0.001
ROWS_A_TASK = 500
# The slow executor has so long to do them that a busy machine finds out in time.
ROWS_OF_LONG_TASK = 3000


def test_tasks_are_done_again_only_where_that_is_clearly_sooner() -> None:
    begun = HeldUpStage(shortest_run_s=5.0, usual_s=5.0)
    assert ends_sooner_elsewhere([begun], pace=4.0), "15 s remain here, 5 s elsewhere"
    assert not ends_sooner_elsewhere([begun], pace=2.0), "5 s here as elsewhere"
    assert not ends_sooner_elsewhere([HeldUpStage(16.0, 5.0)], pace=4.0), "it is nearly done"
    assert not ends_sooner_elsewhere([HeldUpStage(0.1, 0.1)], pace=8.0), "0.7 s are not worth it"
    assert not ends_sooner_elsewhere([], pace=4.0)
    assert not ends_sooner_elsewhere([begun, HeldUpStage(30.0, 10.0)], pace=4.0), "another stage would begin again"


class WordJob:
    """A job that runs in a thread of its own: in each task, every row waits for a millisecond."""

    def __init__(self, spark: SparkSession, group: str, *, shuffled: bool, rows_a_task: int = ROWS_A_TASK) -> None:
        self._spark, self._shuffled, self._group, self._rows_a_task = spark, shuffled, group, rows_a_task
        self._thread = Thread(target=self._run, name=group)
        self.is_done = False

    def __enter__(self) -> WordJob:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._thread.join(LIMIT_S)
        assert self.is_done

    @property
    def runs(self) -> bool:
        return self._thread.is_alive()

    def _run(self) -> None:
        self._spark.sparkContext.setJobGroup(self._group, self._group)
        words = self._spark.range(0, 2 * self._rows_a_task, 1, 2).selectExpr("string(id) AS word")
        parts = words.repartition(2) if self._shuffled else words
        parts.mapInPandas(worker(WAIT_S), "word string").write.format("noop").mode("overwrite").save()
        self.is_done = True


def executors_of(spark: SparkSession, group: str) -> list[str]:
    """On which executors the tasks of the last stage of a job succeeded."""
    tracker, store = spark.sparkContext.statusTracker(), spark.sparkContext._jsc.sc().statusStore()
    (job,) = tracker.getJobIdsForGroup(group)
    info = tracker.getJobInfo(job)
    assert info is not None
    stage = store.lastStageAttempt(max(info.stageIds))
    summaries: Any = store.executorSummary(stage.stageId(), stage.attemptId()).iterator()
    names = []
    while summaries.hasNext():
        pair = summaries.next()
        if int(pair._2().succeededTasks()):
            names.append(str(pair._1()))
    return names


@pytest.fixture(scope="module")
def executors(spark: SparkSession) -> Iterator[Executors]:
    steered = Executors(spark)
    steered.take_over(2)
    steered.grow(2, Deadline.after(LIMIT_S))
    yield steered
    steered.grow(2, Deadline.after(LIMIT_S))


def test_a_slow_executor_goes_in_the_middle_of_a_batch_that_waits_for_it(
    executors: Executors, spark: SparkSession, wait_until: WaitUntil
) -> None:
    slow, other = (info.id for info in executors.alive())
    batch = HeldUpBatch(spark)
    with WordJob(spark, "held-up-warm", shuffled=True):
        pass  # Python starts on both
    with SlowExecutor(slow, FACTOR, spark.sparkContext.applicationId):
        for number in range(4):
            with WordJob(spark, f"held-up-before-{number}", shuffled=False):
                pass
        pace = batch.pace([slow])
        assert pace > 2.0
        assert batch.pace([other]) < 1.0
        with WordJob(spark, "held-up-shuffled", shuffled=True) as shuffled:
            wait_until(
                lambda: executors.scheduler.busy([slow]) and not executors.scheduler.busy([other]), "only one works"
            )
            while shuffled.runs and not executors.scheduler.busy([other]):
                assert not batch.ends_sooner_without([slow], pace), "what it wrote for others would be lost"
        with WordJob(spark, "held-up", shuffled=False, rows_a_task=ROWS_OF_LONG_TASK) as job:
            wait_until(lambda: executors.scheduler.busy([slow]), "it works")
            executors.replace([slow], lambda: lambda: not job.runs, Deadline.after(LIMIT_S), full=True)
    assert slow not in executors_of(spark, "held-up")
