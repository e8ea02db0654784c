"""Uses what the tests use of Spark, so that Java can archive its classes: SQL, a stateful stream, Python workers."""

import sys
from pathlib import Path

from pyspark.sql import SparkSession
from pyspark.sql.functions import udf

directory = Path(sys.argv[1])
spark = (
    SparkSession.builder.master("local[1]")
    .config(
        "spark.sql.streaming.stateStore.providerClass",
        "org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider",
    )
    .config("spark.sql.shuffle.partitions", "1")
    .config("spark.driver.bindAddress", "127.0.0.1")
    .getOrCreate()
)
spark.range(10).select(udf(lambda value: value)("id").alias("id")).write.parquet(str(directory / "numbers"))
rows = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", "10").load()
query = (
    rows.groupBy("value")
    .count()
    .writeStream.format("noop")
    .outputMode("update")
    .option("checkpointLocation", str(directory / "checkpoint"))
    .start()
)
while query.isActive and not query.recentProgress:
    query.awaitTermination(0.2)
query.stop()
java = spark.sparkContext._gateway.proc
spark.stop()
java.stdin.close()  # tells it to exit
java.wait()
