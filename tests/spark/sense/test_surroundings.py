"""The driver and its host, in the process of the driver and over REST."""

from __future__ import annotations

import math
import time
from typing import TYPE_CHECKING

from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.surroundings import Surroundings
from support.rest_server import executor, rest_answering

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_over_rest_the_driver_is_known_once_it_was_read_and_hosts_are_not() -> None:
    reported = {"memoryMetrics": {"totalOnHeapStorageMemory": 176160768}, "peakMemoryMetrics": {"JVMHeapMemory": 7}}
    with rest_answering({"allexecutors": [{**executor("driver"), **reported}]}) as rest:
        watch = ExecutorWatch(rest, lambda: 0.0, lambda gone_ids, new_ids: None, tuple)
        surroundings = Surroundings(watch)
        assert math.isnan(surroundings.look("run", 1.0).driver.heap_bytes)
        watch.read()
        around = surroundings.look("run", 1.0)
    assert (around.driver.heap_bytes, around.driver.heap_limit_bytes) == (7.0, 580 * 2**20)
    assert math.isnan(around.driver.gc_s)
    assert around.hosts == ()


def test_inside_the_driver_its_own_process_tells(local_spark: SparkSession) -> None:
    with rest_answering({}) as rest:
        surroundings = Surroundings(ExecutorWatch(rest, time.monotonic, lambda gone_ids, new_ids: None, tuple))
    surroundings.look_inside(local_spark)
    first = surroundings.look("run", 1.0).driver
    assert 0 < first.heap_bytes < first.heap_limit_bytes
    assert math.isnan(first.gc_s), "it is not known when the batch began"
    local_spark.sparkContext._jvm.java.lang.System.gc()  # type: ignore[union-attr]
    second = surroundings.look("run", 1.0).driver
    assert second.gc_s > 0
    assert math.isnan(surroundings.look("another run", 1.0).driver.gc_s)
