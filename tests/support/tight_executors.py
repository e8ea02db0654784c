"""Queries on executors with too little memory, and the same queries on executors with more, in a process of their own.

`python tight_executors.py <master> <directory>` writes what their managers decided to `runs.pickle`. The memory of
executors is a setting of the whole application, so that the session that other tests share cannot be used.
"""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.core.time_causes import GC_BOUND, SPILLING
from homeostat.spark.cluster.session import build_session, spark_conf
from support.managed_queries import WARM_BATCHES, Build, ManagedRun, run_managed
from support.troubled_queries import sorted_by_text, split_into_words

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

HEAP, SPILL = "heap", "spill"
QUERIES: Mapping[str, tuple[Build, str]] = {HEAP: (split_into_words, GC_BOUND), SPILL: (sorted_by_text, SPILLING)}
# A fiftieth of what is left of the heap is for sorting: a few megabytes. The other value is Spark's own.
LITTLE, USUAL = ({"spark.memory.fraction": share} for share in ("0.02", "0.6"))


@contextmanager
def session(master: str, directory: Path, memory: str, settings: Mapping[str, str]) -> Iterator[SparkSession]:
    """One executor, whose heap has its full size from the start."""
    conf = spark_conf(
        master=master,
        app_name=directory.name,
        executors=1,
        directory=directory,
        executor_memory=memory,
        extra={
            "spark.dynamicAllocation.maxExecutors": "3",
            "spark.executor.defaultJavaOptions": f"-Xms{memory}",
            "spark.sql.adaptive.enabled": "false",
            # Texts that repeat themselves would hardly need the disk.
            "spark.shuffle.spill.compress": "false",
            **settings,
        },
    )
    spark = build_session(conf)
    try:
        yield spark
    finally:
        spark.stop()


def take(spark: SparkSession, directory: Path, until: Callable[[str, ManagedRun], bool]) -> dict[str, ManagedRun]:
    """One after the other: what one leaves on the heap must not slow down the other."""
    runs: dict[str, ManagedRun] = {}
    for name, (build, _) in QUERIES.items():
        runs |= run_managed(spark, directory, {name: build}, until)
    return runs


def main(master: str, directory: Path) -> None:
    def is_named(name: str, run: ManagedRun) -> bool:
        return QUERIES[name][1] in run.alerts and len(run.warm) >= WARM_BATCHES

    with session(master, directory / "little", "512m", LITTLE) as spark:
        troubled = take(spark, directory / "troubled", is_named)
    with session(master, directory / "more", "2g", USUAL) as spark:
        mended = take(spark, directory / "mended", lambda name, run: len(run.warm) >= WARM_BATCHES)
    runs = {name: (troubled[name], mended[name]) for name in QUERIES}
    (directory / "runs.pickle").write_bytes(pickle.dumps(runs))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
