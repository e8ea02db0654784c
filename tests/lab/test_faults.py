"""The faults do to real executors what they say."""

from __future__ import annotations

import json
import os
import signal
import statistics
import subprocess
import sys
import urllib.request
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import psutil
import pytest

from homeostat.lab.faults import SlowExecutor, executor_processes, hang_while, kill_executor
from homeostat.lab.wordcount import worker
from homeostat.spark.act.executors import Executors

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LiveExecutors = Callable[[], list[str]]

ROWS_A_TASK = 900  # some cycles of the fault
TASKS = 12
TOLERANCE = 0.3
DEMONSTRATION = """
import sys, time
from homeostat.lab import faults
faults._executor_pid = lambda *_: int(sys.argv[1])
faults.SlowExecutor("0", 50).start()
time.sleep(600)
"""


def run_times_ms(spark: SparkSession, group: str) -> dict[str, list[float]]:
    """How long each task of the word count's first stage took, which waits a millisecond per row, by executor."""
    context = spark.sparkContext
    context.setJobGroup(group, group)
    words = spark.range(0, TASKS * ROWS_A_TASK, 1, TASKS).selectExpr("string(id) AS word")
    words.mapInPandas(worker(0.001), "word string").write.format("noop").mode("overwrite").save()
    (job,) = context.statusTracker().getJobIdsForGroup(group)
    info = context.statusTracker().getJobInfo(job)
    assert info is not None
    url = f"{context.uiWebUrl}/api/v1/applications/{context.applicationId}/stages/{info.stageIds[0]}/0/taskList"
    with urllib.request.urlopen(f"{url}?length={TASKS}", timeout=30) as answer:
        tasks: list[dict[str, Any]] = json.load(answer)
    times = defaultdict(list)
    for task in tasks:
        times[task["executorId"]].append(float(task["taskMetrics"]["executorRunTime"]))
    return times


def is_stopped(pid: int) -> bool:
    return bool(psutil.Process(pid).status() == psutil.STATUS_STOPPED)


def test_every_executor_is_found(spark: SparkSession, live_executors: LiveExecutors) -> None:
    processes = executor_processes(spark.sparkContext.applicationId)
    assert set(live_executors()) <= set(processes)
    assert executor_processes("app-of-somebody-else") == {}


@pytest.mark.parametrize("factor", [pytest.param(2.0, marks=pytest.mark.soak), 4.0])
def test_a_slow_executor_is_slower_by_the_stated_factor(
    spark: SparkSession, live_executors: LiveExecutors, factor: float
) -> None:
    run_times_ms(spark, f"warm-up {factor}")
    slow = min(live_executors(), key=int)
    with SlowExecutor(slow, factor, spark.sparkContext.applicationId):
        times = run_times_ms(spark, f"slowed {factor}")
    healthy = [time_ms for executor, measured in times.items() if executor != slow for time_ms in measured]
    ratio = statistics.median(times[slow]) / statistics.median(healthy)
    assert ratio == pytest.approx(factor, rel=TOLERANCE)


def test_everything_runs_on_after_the_fault(spark: SparkSession, live_executors: LiveExecutors) -> None:
    slow = min(live_executors(), key=int)
    application = spark.sparkContext.applicationId
    fault = SlowExecutor(slow, 4, application)
    fault.start()
    fault.stop()
    fault.stop()
    assert not any(is_stopped(pid) for pid in executor_processes(application)[slow])


def test_a_killed_demonstration_leaves_nothing_stopped(wait_until: WaitUntil) -> None:
    with (
        subprocess.Popen(["sleep", "600"]) as victim,
        subprocess.Popen([sys.executable, "-c", DEMONSTRATION, str(victim.pid)]) as demonstration,
    ):
        wait_until(lambda: is_stopped(victim.pid), "the process is stopped")
        (throttle,) = psutil.Process(demonstration.pid).children()
        os.kill(demonstration.pid, signal.SIGKILL)
        wait_until(lambda: not throttle.is_running(), "the process that stopped it is gone")
        assert not is_stopped(victim.pid)
        victim.kill()


def test_a_factor_that_slows_nothing_is_refused() -> None:
    with pytest.raises(ValueError, match="factor = 1 must be above 1"):
        SlowExecutor("0", 1)


def test_an_unknown_executor_is_refused(spark: SparkSession) -> None:
    with pytest.raises(LookupError, match="executor 999 is not running on this machine; running: "):
        kill_executor("999", spark.sparkContext.applicationId)


def test_a_sink_hangs_while_the_file_exists(spark: SparkSession, workspace: Path, wait_until: WaitUntil) -> None:
    hold = workspace / "hold"
    hold.touch()
    written: list[int] = []

    def write(frame: DataFrame, batch: int) -> None:
        written.append(frame.count())

    stream = spark.readStream.format("rate").option("rowsPerSecond", 10).load().writeStream
    query = stream.foreachBatch(hang_while(hold, write)).option("checkpointLocation", str(workspace / "state")).start()
    try:
        wait_until(lambda: query.status["isTriggerActive"], "a batch is under way")
        assert not written
        hold.unlink()
        wait_until(lambda: bool(written), "the batch was written")
    finally:
        query.stop()


def test_a_killed_executor_is_gone_and_spark_brings_another(
    spark: SparkSession, live_executors: LiveExecutors, wait_until: WaitUntil
) -> None:
    before = live_executors()
    Executors(spark).request(len(before))  # whatever was asked for last: that many are to be kept
    victim = max(before, key=int)
    doomed = [psutil.Process(pid) for pid in executor_processes(spark.sparkContext.applicationId)[victim]]
    assert kill_executor(victim, spark.sparkContext.applicationId) == doomed[0].pid
    wait_until(lambda: not any(process.is_running() for process in doomed), "its Python workers are gone as well")
    wait_until(lambda: victim not in live_executors(), "Spark knows that it is gone")
    wait_until(lambda: len(live_executors()) == len(before), "another has come")
