"""The memory and the garbage collection of the driver, from its own process."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeostat.core.observation import DriverSample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


class DriverProcess:
    """The driver's JVM, over the gateway: one call for each value, a few milliseconds together."""

    def __init__(self, spark: SparkSession) -> None:
        lang: Any = spark.sparkContext._jvm.java.lang  # type: ignore[union-attr]
        self._runtime = lang.Runtime.getRuntime()
        self._limit_bytes = float(self._runtime.maxMemory())
        self._collectors = list(lang.management.ManagementFactory.getGarbageCollectorMXBeans())
        self.pid = int(lang.ProcessHandle.current().pid())

    def gc_s(self) -> float:
        """The time of garbage collection so far."""
        return float(sum(collector.getCollectionTime() for collector in self._collectors)) / 1000

    def sample(self, gc_s: float) -> DriverSample:
        """The current values, with the time of garbage collection in a batch."""
        used_bytes = float(self._runtime.totalMemory() - self._runtime.freeMemory())
        return DriverSample(used_bytes, self._limit_bytes, gc_s)
