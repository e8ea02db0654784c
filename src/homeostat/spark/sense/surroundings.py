"""The driver and its host at the end of a batch."""

from __future__ import annotations

import os
import time
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeostat.core.observation import NAN, DriverSample, HostSample
from homeostat.spark.sense.driver_process import DriverProcess
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.host_load import HostLoad

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_RUNS_KEPT = 100  # a choice: more queries than one application has


@dataclass(frozen=True, slots=True)
class Around:
    driver: DriverSample = DriverSample()
    hosts: tuple[HostSample, ...] = ()


class Surroundings:
    """Before `look_inside`, the driver is observed over REST: the use of its heap is the largest so far, and the
    garbage collection in a batch is estimated from that of the last minute. Only the host of this process is known."""

    def __init__(self, executors: ExecutorWatch) -> None:
        self._executors = executors
        self._gc_before_s: dict[str, float] = {}
        self._process: DriverProcess | None = None
        self._host: HostLoad | None = None

    def look_inside(self, spark: SparkSession) -> None:
        """From now on look at the driver of this session, which runs on the host of this process."""
        context = spark.sparkContext
        self._process = DriverProcess(spark)
        roots = (os.getpid(), self._process.pid)
        host = str(context.getConf().get("spark.driver.host", ""))
        if os.path.exists("/proc/stat"):
            self._host = HostLoad(host, str(context.applicationId), roots, time.monotonic)

    def look(self, run: str, batch_s: float) -> Around:
        """At the end of a batch of this run that took `batch_s`."""
        hosts = self._host.look() if self._host is not None else ()
        if self._process is None:
            return Around(self._executors.driver_sample(batch_s), hosts)
        gc_s = self._process.gc_s()
        before_s = self._gc_before_s.pop(run, NAN)
        self._gc_before_s = dict(list(self._gc_before_s.items())[-_RUNS_KEPT:]) | {run: gc_s}
        return Around(self._process.sample(gc_s - before_s), hosts)
