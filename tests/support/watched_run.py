"""Small queries on Spark in a process of their own, with an event log, and what the sensors said about them.

`python watched_run.py <directory>` writes the events to `events` and the observations to `observations.pickle`.
"""

from __future__ import annotations

import pickle
import sys
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.core.events import Event, Observed
from homeostat.spark.cluster.session import build_session, spark_conf
from homeostat.spark.sense.application_sensors import Sensors
from homeostat.spark.sense.query_handle import QueryHandle, handle_of
from homeostat.spark.sense.rest_client import RestClient

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

SORTING, FAILING = "sorting", "failing"
BATCHES = 3
ROWS = 4_000
LIMIT_S = 300.0


def fail_once(frames: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
    """The first attempt at the first partition fails."""
    from pyspark import TaskContext

    context = TaskContext.get()
    if context is not None and context.partitionId() == 0 and context.attemptNumber() == 0:
        raise ValueError("the first attempt fails")
    yield from frames


def sort_after_a_job(directory: Path, frame: DataFrame, batch: int) -> None:
    """A job of its own, then one on the rows of the batch, which spills and writes three files."""
    frame.sparkSession.sparkContext.setJobDescription("look something up")
    frame.sparkSession.range(1000).selectExpr("sum(id)").collect()
    frame.repartition(3).sortWithinPartitions("timestamp").write.mode("append").parquet(str(directory / "rows"))


def started(spark: SparkSession, directory: Path) -> list[StreamingQuery]:
    rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", ROWS).option("numPartitions", 2).load()
    rows = rows.withWatermark("timestamp", "10 seconds")
    sorting = rows.writeStream.queryName(SORTING).foreachBatch(partial(sort_after_a_job, directory))
    counts = rows.mapInPandas(fail_once, rows.schema).groupBy("value").count()
    failing = counts.writeStream.queryName(FAILING).outputMode("update").format("noop")
    return [
        writer.option("checkpointLocation", str(directory / f"checkpoint-{number}"))
        .trigger(processingTime="1 second")
        .start()
        for number, writer in enumerate((sorting, failing))
    ]


def main(directory: Path) -> None:
    conf = spark_conf(
        master="local[2,3]",
        app_name="watched",
        executors=1,
        directory=directory / "session",
        event_log=directory / "events",
        extra={
            "spark.driver.memory": "512m",
            "spark.sql.shuffle.partitions": "2",
            # A sort spills after so many rows, however much memory it has.
            "spark.shuffle.spill.numElementsForceSpillThreshold": str(ROWS // 8),
        },
    )
    spark = build_session(conf)
    events: list[Event] = []
    handles: list[QueryHandle] = []
    # The machine may be busy with other tests, so the client is patient.
    rest = RestClient(str(spark.sparkContext.uiWebUrl), timeout_s=60.0, first_timeout_s=60.0)
    sensors = Sensors(rest, lambda: handles, events.append, spark=spark)
    sensors.start()
    queries = started(spark, directory)
    handles += [handle_of(query, str(query.name), 1.0) for query in queries]

    def enough() -> bool:
        observations = [event.observation for event in events if isinstance(event, Observed)]
        whole = [each.run for each in observations if each.tasks]
        return all(whole.count(str(query.runId)) >= BATCHES for query in queries)

    deadline = time.monotonic() + LIMIT_S
    while not enough() and time.monotonic() < deadline:
        time.sleep(0.1)
    for query in queries:
        query.stop()
    sensors.stop()
    spark.stop()
    (directory / "observations.pickle").write_bytes(pickle.dumps(events))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
