"""The driver's JVM."""

from __future__ import annotations

from typing import TYPE_CHECKING

from homeostat.spark.sense.driver_process import DriverProcess

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_the_process_is_that_of_the_jvm(local_spark: SparkSession) -> None:
    process = DriverProcess(local_spark)
    assert process.pid > 1
    before_s = process.gc_s()
    local_spark.sparkContext._jvm.java.lang.System.gc()  # type: ignore[union-attr]
    assert process.gc_s() > before_s
    sample = process.sample(1.5)
    assert 0 < sample.heap_bytes <= sample.heap_limit_bytes
    assert sample.gc_s == 1.5
