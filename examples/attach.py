"""An ordinary Spark application, and the one line that attaches Homeostat:

    spark-submit examples/attach.py

Nothing else changes, and the query is never restarted. In the default mode `advise`, Homeostat changes nothing at all.
`homeostat log` shows what it would do.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import homeostat as hs

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery


def start_counting(spark: SparkSession) -> StreamingQuery:
    rows = spark.readStream.format("rate").option("rowsPerSecond", 200).load()
    counts = rows.groupBy((rows.value % 10).alias("digit")).count()
    writer = counts.writeStream.queryName("counting").outputMode("update").format("console")
    return writer.trigger(processingTime="2 seconds").start()


def main() -> None:
    from pyspark.sql import SparkSession

    spark = SparkSession.builder.appName("counting").getOrCreate()
    hs.attach(spark, objective=hs.Lag(at_most="30 s"))
    start_counting(spark).awaitTermination()


if __name__ == "__main__":
    main()
