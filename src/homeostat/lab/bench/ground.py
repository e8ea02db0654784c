"""A temporary Spark cluster and session for measurements."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors, whom_to_retire
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.spark.cluster.kafka_connector import with_connector
from homeostat.spark.cluster.session import build_session, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WORKERS, CORES = 3, 4
UP_S = 180.0


@dataclass(frozen=True)
class Ground:
    """A session on the cluster. All files go below `directory`, which is removed at the end."""

    spark: SparkSession
    directory: Path

    def set_executors(self, count: int) -> None:
        """Adds or removes executors, and returns once there are exactly `count`."""
        executors = Executors(self.spark)
        executors.take_over(count)
        deadline = Deadline.after(UP_S)
        present = executors.alive()
        if len(present) > count:
            executors.kill(whom_to_retire(present, len(present) - count))
            executors.see_them_gone()
        executors.grow(count, deadline)


@contextmanager
def ground(
    name: str, executors: int, *, event_log: Path | None = None, most: int | None = None, kafka: bool = False
) -> Iterator[Ground]:
    """Starts a cluster with this many executors of one core, and never more than `most`. With `kafka`, the session can
    read from it."""
    with TemporaryDirectory(prefix="homeostat-bench-") as path:
        directory = Path(path)
        with EmbeddedCluster(directory / "cluster", workers=WORKERS, cores=CORES) as cluster:
            conf = spark_conf(
                master=cluster.master_url,
                app_name=name,
                executors=executors,
                directory=directory / "session",
                event_log=event_log,
                extra={} if most is None else {"spark.dynamicAllocation.maxExecutors": str(most)},
            )
            spark = build_session(with_connector(conf) if kafka else conf)
            try:
                here = Ground(spark, directory)
                here.set_executors(executors)
                yield here
            finally:
                spark.stop()


def machine() -> dict[str, Any]:
    """Facts about the machine that a reader needs to judge the numbers."""
    return {"cores": os.cpu_count(), "load_average": [round(load, 1) for load in os.getloadavg()]}
