"""Rows that a repeated batch writes again have the names that they had before, so that each counts once."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import homeostat as hs
from homeostat.core.errors import ConfigError
from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.ledger import read_ledger
from homeostat.lab.kafka.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

# Two rows with the same value in one batch are two rows.
WRITTEN = [f"row {number // 2}" for number in range(200)]


def read(spark: SparkSession, servers: str, topic: str) -> DataFrame:
    reader = spark.readStream.format("kafka").option("kafka.bootstrap.servers", servers).option("subscribe", topic)
    rows = reader.option("startingOffsets", "earliest").option("maxOffsetsPerTrigger", 120).load()
    return rows.selectExpr("CAST(value AS STRING) AS value", "concat(partition, '-', offset) AS place")


def run(rows: DataFrame, servers: str, topic: str, checkpoint: Path, **how: str) -> None:
    writer = hs.kafka_sink(rows, servers, topic, **how)  # type: ignore[arg-type]
    query = writer.option("checkpointLocation", str(checkpoint)).trigger(availableNow=True).start()
    query.awaitTermination()


def repeat_last_batch(checkpoint: Path) -> None:
    """As after a driver that died when a batch was written and before that was noted."""
    commits = checkpoint / "commits"
    last = max(int(file.name) for file in commits.iterdir() if file.name.isdigit())
    for file in (commits / str(last), commits / f".{last}.crc"):
        file.unlink(missing_ok=True)


@pytest.mark.parametrize("how", [{}, {"id": "place"}])
def test_each_row_counts_once_although_a_batch_was_written_twice(
    kafka: KafkaBroker, topics: Topics, topic_name: str, local_spark: SparkSession, tmp_path: Path, how: dict[str, str]
) -> None:
    target = f"{topic_name}-target"
    topics.create(topic_name, 2)
    topics.create(target, 2)
    topics.write(topic_name, WRITTEN)
    rows = read(local_spark, kafka.servers, topic_name)
    run(rows, kafka.servers, target, tmp_path, **how)
    assert read_ledger(topics, target).differences(WRITTEN) == []
    repeat_last_batch(tmp_path)
    run(rows, kafka.servers, target, tmp_path, **how)
    ledger = read_ledger(topics, target)
    assert ledger.repeated > 0
    assert ledger.differences(WRITTEN) == []
    # With a new checkpoint the rows are new ones, and none is taken for one of those before.
    shutil.rmtree(tmp_path)
    run(rows, kafka.servers, target, tmp_path, **how)
    assert read_ledger(topics, target).differences([*WRITTEN, *WRITTEN]) == []


def test_a_column_that_is_missing_is_named(local_spark: SparkSession) -> None:
    with pytest.raises(ConfigError, match="no column 'value'"):
        hs.kafka_sink(local_spark.range(1), "b:1", "orders")
