"""Executors that come and go."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from typing import TYPE_CHECKING

import pytest

from homeostat.core.observation import WorkerLoss
from homeostat.lab.faults import executor_processes
from homeostat.spark.sense.executor_watch import ExecutorWatch, executor_news, memory_fraction
from homeostat.spark.sense.rest_client import RestClient
from support.rest_server import Answers, executor, rest_answering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Wait = Callable[[Callable[[], bool], str], None]
PATIENT_S = 60.0


def test_changes_are_reported_but_not_the_first_answer() -> None:
    answers: Answers = {"allexecutors": [executor("1"), executor("2"), executor("3", alive=False)]}
    changes: list[tuple[frozenset[str], frozenset[str]]] = []
    with rest_answering(answers) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: changes.append((gone_ids, new_ids)), tuple)
        watch.read()
        assert watch.workers.ids == ("1", "2")
        assert changes == []
        answers["allexecutors"] = [executor("2"), executor("4")]
        watch.read()
        watch.read()
    assert changes == [(frozenset({"1"}), frozenset({"4"}))]
    assert executor_news(*changes[0]) == "executor 1 was lost, executor 4 was added"


def test_news_that_could_not_be_sent_are_sent_again() -> None:
    answers: Answers = {"allexecutors": [executor("1")]}
    changes: list[frozenset[str]] = []

    def tell(gone_ids: frozenset[str], new_ids: frozenset[str]) -> None:
        changes.append(new_ids)
        if len(changes) == 1:
            raise ConnectionError("the driver does not answer")

    with rest_answering(answers) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, tell, tuple)
        watch.read()
        answers["allexecutors"] = [executor("1"), executor("2")]
        with pytest.raises(ConnectionError):
            watch.read()
        watch.read()
        watch.read()
    assert changes == [{"2"}, {"2"}]


def test_an_executor_that_leaves_is_gone_before_its_process_is() -> None:
    with rest_answering({"allexecutors": [executor("1"), executor("2")]}) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: None, lambda: {"2"})
        watch.read()
    assert watch.workers.ids == ("1",)


def test_an_answer_is_fresh_for_three_seconds_and_silence_is_counted_from_it() -> None:
    now_s = [100.0]
    with rest_answering({"allexecutors": [executor("1")]}) as rest:
        watch = ExecutorWatch(rest, lambda: now_s[0], lambda gone_ids, new_ids: None, tuple)
        now_s[0] = 110.0
        assert not watch.fresh
        assert watch.silent_s == 10.0
        watch.read()
    now_s[0] = 112.9
    assert watch.fresh
    now_s[0] = 113.0
    assert not watch.fresh
    assert watch.silent_s == 3.0


def test_losses_have_the_reason_of_spark_and_leave_out_who_was_asked_to_leave() -> None:
    answers: Answers = {"allexecutors": [executor(str(number)) for number in range(1, 6)]}
    leaving: set[str] = set()
    with rest_answering(answers) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: None, lambda: leaving)
        watch.read()
        assert watch.losses(0) == ()
        leaving.add("5")
        reasons = {
            "1": "Command exited with code 137\nand more",
            "2": "Executor decommission: retired",
            "3": "Executor killed by driver.",
        }
        dead_executors = [
            {**executor(number, alive=False), "removeReason": reason} for number, reason in reasons.items()
        ]
        answers["allexecutors"] = [*dead_executors, executor("5")]
        watch.read()
        watch.read()
    lost = (WorkerLoss("1", "host-1", "Command exited with code 137"), WorkerLoss("4", "host-4", ""))
    assert watch.losses(0) == lost, "Spark has forgotten 4"
    assert watch.losses(1) == lost[1:]
    assert watch.losses(watch.lost_count) == ()


def test_the_heap_of_workers_and_of_the_driver_is_known_once_spark_reports_it() -> None:
    memory = {"totalOnHeapStorageMemory": 176160768}
    reported = {"memoryMetrics": memory, "peakMemoryMetrics": {"JVMHeapMemory": 324586664}, "totalGCTime": 0}
    answers: Answers = {"allexecutors": [executor("1"), {**executor("driver"), "maxTasks": 0, **reported}]}
    now_s = [0.0]
    with rest_answering(answers) as rest:
        watch = ExecutorWatch(rest, lambda: now_s[0], lambda gone_ids, new_ids: None, tuple)
        assert watch.driver_sample(1.0).heap_bytes != watch.driver_sample(1.0).heap_bytes
        for now_s[0] in (0.0, 10.0, 20.0):
            answers["allexecutors"][1]["totalGCTime"] = 100 * now_s[0]
            watch.read()
    assert str(watch.workers.heap_bytes) == str(watch.workers.heap_limit_bytes) == "[nan]"
    driver = watch.driver_sample(4.0)
    assert (driver.heap_bytes, driver.heap_limit_bytes) == (324586664.0, 580 * 2**20)
    assert driver.gc_s == pytest.approx(0.4)


def test_the_memory_fraction_is_a_setting_of_the_application() -> None:
    assert memory_fraction({}) == 0.6
    assert memory_fraction({"spark.memory.fraction": "0.4"}) == 0.4
    assert memory_fraction({"spark.memory.fraction": "much"}) == 0.6


def test_an_executor_that_is_killed_is_lost_with_its_exit_code(
    spark: SparkSession, two_executors: None, wait_until: Wait
) -> None:
    url, application = str(spark.sparkContext.uiWebUrl), str(spark.sparkContext.applicationId)
    with closing(RestClient(url, first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)) as rest:
        watch = ExecutorWatch(rest, time.monotonic, lambda gone_ids, new_ids: None, tuple)
        watch.read()
        victim = watch.workers.ids[-1]
        host = watch.workers.hosts[-1]
        os.kill(executor_processes(application)[victim][0], signal.SIGKILL)

        def is_lost() -> bool:
            watch.read()
            return victim not in watch.workers.ids

        wait_until(is_lost, "Spark has noticed that the executor is gone")
    (loss,) = watch.losses(0)
    assert (loss.worker, loss.host) == (victim, host)
    assert "137" in loss.reason or "disassociated" in loss.reason.lower()
