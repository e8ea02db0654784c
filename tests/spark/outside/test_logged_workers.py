"""Executors and the driver, from events in the format of Spark 4.3."""

from __future__ import annotations

import math
from typing import Any

from homeostat.core.observation import WorkerLoss
from homeostat.spark.outside.logged_workers import LoggedWorkers


def added(identity: str, cores: int = 2) -> dict[str, Any]:
    return {"Executor ID": identity, "Executor Info": {"Host": f"host-{identity}", "Total Cores": cores}}


def removed(identity: str, reason: str) -> dict[str, Any]:
    return {"Executor ID": identity, "Removed Reason": reason}


def measured(identity: str, heap_bytes: int, gc_ms: int = 0) -> dict[str, Any]:
    return {"Executor ID": identity, "Executor Metrics": {"JVMHeapMemory": heap_bytes, "TotalGCTime": gc_ms}}


def manager(identity: str, storage_bytes: int) -> dict[str, Any]:
    return {"Block Manager ID": {"Executor ID": identity, "Host": "h"}, "Maximum Onheap Memory": storage_bytes}


def test_executors_come_and_go_and_only_those_that_were_not_asked_to_are_lost() -> None:
    workers = LoggedWorkers()
    workers.environment({"Spark Properties": {"spark.task.cpus": "2"}})
    for identity in ("0", "1", "2", "3"):
        workers.executor_added(added(identity, cores=4))
    assert workers.workers().slots.tolist() == [2.0] * 4
    workers.executor_removed(removed("1", "Command exited with code 137"))
    workers.executor_removed(removed("2", "Executor killed by driver."))
    workers.executor_removed(removed("9", "never added"))
    assert workers.workers().ids == ("0", "3")
    assert workers.losses == [WorkerLoss("1", "host-1", "Command exited with code 137")]


def test_the_heap_is_the_most_that_was_used_and_its_size_follows_from_the_caches() -> None:
    workers = LoggedWorkers()
    workers.block_manager_added(manager("driver", 176160768))
    workers.executor_added(added("0"))
    workers.block_manager_added(manager("0", 122644070))
    assert math.isnan(workers.workers().heap_bytes[0])
    for heap_bytes in (5, 9, 0, 7):
        workers.stage_metrics(measured("0", heap_bytes))
    workers.task_ended({"Task Info": {"Executor ID": "0"}, "Task Executor Metrics": {"JVMHeapMemory": 8}})
    assert workers.workers().ids == ("0",), "the driver is no worker"
    assert workers.workers().heap_bytes.tolist() == [9.0]
    assert round(workers.workers().heap_limit_bytes[0] / 2**20) == 495
    assert workers.driver(0.0, 1.0).heap_limit_bytes == 580 * 2**20


def test_garbage_collection_of_the_driver_is_unknown_unless_it_is_logged() -> None:
    workers = LoggedWorkers()
    assert math.isnan(workers.driver(0.0, 1.0).gc_s)
    workers.stage_metrics(measured("driver", 100, gc_ms=1000))
    workers.driver(0.0, 1.0)
    workers.stage_metrics(measured("driver", 100, gc_ms=3000))
    sample = workers.driver(20.0, 5.0)
    assert (sample.heap_bytes, sample.gc_s) == (100.0, 0.5)
