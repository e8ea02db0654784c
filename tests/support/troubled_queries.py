"""Small streaming queries, each with one fault, and the same query after the advice about it was followed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyspark import TaskContext, cloudpickle
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as f
from pyspark.sql.datasource import DataSource, DataSourceStreamWriter, WriterCommitMessage
from pyspark.sql.streaming.readwriter import DataStreamWriter
from pyspark.sql.types import StructType

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

# The executors do not know this file.
cloudpickle.register_pickle_by_value(sys.modules[__name__])  # type: ignore[no-untyped-call]


def counted_rows(spark: SparkSession, rows: int, partitions: int = 2, start_s: int = 0) -> DataFrame:
    """So many rows in each batch, with the columns `value` and `timestamp`, which goes a second further each time."""
    reader = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", rows)
    reader = reader.option("numPartitions", partitions).option("advanceMillisPerBatch", 1000)
    return reader.option("startTimestamp", 1000 * start_s).load()


# A system that takes this long for each request, however many rows it has.
REQUEST_S = 0.03
ROWS_WRITTEN = 60


def request(rows: Sequence[Row]) -> None:
    """Write the rows to the system."""
    time.sleep(REQUEST_S)


def written_row_by_row(spark: SparkSession, directory: Path) -> DataStreamWriter:
    def write(frame: DataFrame, batch: int) -> None:
        for row in frame.collect():
            request([row])

    return counted_rows(spark, ROWS_WRITTEN).writeStream.foreachBatch(write)


def written_in_one_request(spark: SparkSession, directory: Path) -> DataStreamWriter:
    def write(frame: DataFrame, batch: int) -> None:
        request(frame.collect())

    return counted_rows(spark, ROWS_WRITTEN).writeStream.foreachBatch(write)


# How long the table takes to take over a file when a batch is committed.
COMMIT_S = 0.3


class TableWriter(DataSourceStreamWriter):
    """Each task writes a file. The commit on the driver takes over one file after the other."""

    def write(self, iterator: Iterator[Row]) -> WriterCommitMessage:
        for _ in iterator:
            pass
        return WriterCommitMessage()

    def commit(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        for _ in messages:
            time.sleep(COMMIT_S)

    def abort(self, messages: list[WriterCommitMessage | None], batchId: int) -> None:  # noqa: N803
        pass


class Table(DataSource):
    @classmethod
    def name(cls) -> str:
        return "slow-table"

    def streamWriter(self, schema: StructType, overwrite: bool) -> TableWriter:  # noqa: N802
        return TableWriter()


def committed_in_files(files: int, spark: SparkSession, directory: Path) -> DataStreamWriter:
    spark.dataSource.register(Table)
    return counted_rows(spark, 60).repartition(files).writeStream.format(Table.name())


COLUMNS = 120


def column(number: int) -> tuple[str, Any]:
    return f"column_{number}", f.col("value") % (number + 2)


def write_chosen(frame: DataFrame) -> None:
    """Few columns are written, so that the work of the executors is the same small one however they are planned."""
    frame.select("column_0", f"column_{COLUMNS - 1}").write.format("noop").mode("overwrite").save()


def planned_column_by_column(spark: SparkSession, directory: Path) -> DataStreamWriter:
    """As code in a loop does: each call analyses the whole plan again."""

    def write(frame: DataFrame, batch: int) -> None:
        for number in range(COLUMNS):
            frame = frame.withColumn(*column(number))
        write_chosen(frame)

    return counted_rows(spark, 60).writeStream.foreachBatch(write)


def planned_at_once(spark: SparkSession, directory: Path) -> DataStreamWriter:
    def write(frame: DataFrame, batch: int) -> None:
        write_chosen(frame.withColumns(dict(map(column, range(COLUMNS)))))

    return counted_rows(spark, 60).writeStream.foreachBatch(write)


# One row of each batch cannot be parsed, and Spark tries its partition so many times in vain.
POISON, VAIN_ATTEMPTS = 59, 2
ROW_S = 0.015


def parse(value: int) -> int:
    context = TaskContext.get()
    time.sleep(ROW_S)
    if value % 60 == POISON and context is not None and context.attemptNumber() < VAIN_ATTEMPTS:
        raise ValueError(f"cannot parse row {POISON}")
    return value


def parsed(rows: DataFrame) -> DataStreamWriter:
    return (
        rows.select(f.udf(parse, "long", useArrow=False)("value").alias("value"))
        .where("value >= 0")
        .writeStream.format("noop")
    )


def with_poison(spark: SparkSession, directory: Path) -> DataStreamWriter:
    return parsed(counted_rows(spark, 60))


def without_poison(spark: SparkSession, directory: Path) -> DataStreamWriter:
    return parsed(counted_rows(spark, 60).where(f"value % 60 != {POISON}"))


START_S = 1_700_000_000


def pairs(other: DataFrame, rows: DataFrame) -> DataStreamWriter:
    left = rows.withWatermark("timestamp", "2 seconds").withColumnRenamed("value", "key")
    right = other.selectExpr("value AS other", "timestamp AS at").withWatermark("at", "2 seconds")
    near = "key = other AND at BETWEEN timestamp - interval 3 seconds AND timestamp + interval 3 seconds"
    return left.join(right, f.expr(near)).writeStream.format("noop")


def joined_with_an_idle_input(spark: SparkSession, directory: Path) -> DataStreamWriter:
    """The second input had a row once."""
    first = spark.createDataFrame([(0, START_S)], "value long, second long")
    first = first.selectExpr("value", "timestamp_seconds(second) AS timestamp")
    first.write.parquet(str(directory / "input"))
    idle = spark.readStream.schema(first.schema).parquet(str(directory / "input"))
    return pairs(idle, counted_rows(spark, 20, start_s=START_S))


def joined_with_a_living_input(spark: SparkSession, directory: Path) -> DataStreamWriter:
    return pairs(counted_rows(spark, 20, start_s=START_S), counted_rows(spark, 20, start_s=START_S))


# Each pair of a join is scored by a system that takes this long.
SCORE_S = 0.004
SALTS = 8


def score(value: int) -> int:
    time.sleep(SCORE_S)
    return value


def scored(rows: DataFrame, table: DataFrame, keys: list[str]) -> DataStreamWriter:
    """Both sides are shuffled by these keys, and the tasks that join the rows also score them."""
    pairs = rows.join(table.hint("shuffle_hash"), keys)
    return (
        pairs.select(f.udf(score, "long", useArrow=False)("number").alias("score"))
        .where("score >= 0")
        .writeStream.format("noop")
    )


def words_and_table(spark: SparkSession) -> tuple[DataFrame, DataFrame]:
    """Three of four rows have the same word, which is ten times in the table. All others are in it once."""
    rows = counted_rows(spark, 60).selectExpr("if(value % 4 = 0, value % 20, 0) AS word", "value")
    once, often = spark.range(1, 21).selectExpr("id AS word", "id AS number"), spark.range(10)
    return rows, once.unionByName(often.selectExpr("0L AS word", "id AS number"))


def joined_by_word(spark: SparkSession, directory: Path) -> DataStreamWriter:
    rows, table = words_and_table(spark)
    return scored(rows, table, ["word"])


def joined_by_salted_word(spark: SparkSession, directory: Path) -> DataStreamWriter:
    rows, table = words_and_table(spark)
    salted = rows.withColumn("salt", f.expr(f"value % {SALTS}"))
    copies = table.withColumn("salt", f.explode(f.sequence(f.lit(0), f.lit(SALTS - 1))))
    return scored(salted, copies.withColumn("salt", f.col("salt").cast("long")), ["word", "salt"])


# The words of one row need about a third of a heap of 512 MB, because each of them becomes several objects.
WORDS, LONG_ROWS = 900_000, 3


def split_into_words(spark: SparkSession, directory: Path) -> DataStreamWriter:
    """Each row becomes a long text and is split into words, which all lie on the executor's heap for a moment."""
    text = f"repeat(concat('w', value, ' '), {WORDS})"
    words = counted_rows(spark, LONG_ROWS, partitions=1).selectExpr(f"size(split({text}, ' ')) AS words")
    return words.where("words > 0").writeStream.format("noop")


# The rows that are sorted have 64 MB.
COPIES, TEXT_BYTES = 2_500, 256


def sorted_by_text(spark: SparkSession, directory: Path) -> DataStreamWriter:
    def write(frame: DataFrame, batch: int) -> None:
        copies = frame.selectExpr("value", f"explode(sequence(1, {COPIES})) AS copy")
        text = f.repeat(f.md5(f.concat_ws("-", "value", "copy")), TEXT_BYTES // 32)
        dealt = copies.withColumn("text", text).repartition(1)
        dealt.sortWithinPartitions("text").write.format("noop").mode("overwrite").save()

    return counted_rows(spark, 100).writeStream.foreachBatch(write)
