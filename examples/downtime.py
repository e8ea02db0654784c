"""Detect sensors that have stopped sending, with a value and timers. `downtime_spark.py` is Spark's own version.

Run it with: spark-submit examples/downtime.py
"""

from __future__ import annotations

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import Any

import homeostat as hs

EPOCH = datetime.fromtimestamp(0, UTC)


class DownTimeDetector(hs.State):
    emits = "id STRING, timeValues STRING"
    last_seen = hs.Value(datetime, EPOCH)

    def on_rows(self, key: str, rows: Iterator[Any]) -> None:
        latest = max(row.timestamp for row in rows)
        if self.last_seen < latest:
            self.sleep()
            self.last_seen = latest
        self.wake("5 s")

    def on_timer(self, key: str, at_ms: int) -> Iterator[tuple[str, str]]:
        self.wake("10 s")
        yield key, str(self.now_ms - int(self.last_seen.timestamp() * 1000))


def main() -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("downtime").getOrCreate()
    spark.conf.set(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    readings = spark.readStream.format("rate").load().selectExpr("CAST(value % 7 AS STRING) AS id", "timestamp")
    silent = DownTimeDetector().over(readings.groupBy("id"))
    silent.writeStream.outputMode("append").format("console").start().awaitTermination()


if __name__ == "__main__":
    main()
