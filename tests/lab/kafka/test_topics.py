"""Topics on the real broker: rows come back with their keys, and Spark reads the same ones."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from homeostat.core.errors import HomeostatError
from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.topics import Topics

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_rows_come_back_with_their_keys_and_places(topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 2)
    topics.write(topic_name, ["x", "y"], key=lambda number: f"k{number}", partition=lambda number: number)
    rows = list(topics.rows(topic_name))
    assert [(row.partition, row.offset, row.key, row.value) for row in rows] == [
        (0, 0, b"k0", b"x"),
        (1, 0, b"k1", b"y"),
    ]
    assert topics.ends(topic_name) == {0: 1, 1: 1}


def test_a_row_that_the_broker_cannot_take_is_an_error(topics: Topics, topic_name: str) -> None:
    topics.create(topic_name)
    topics.set(topic_name, {"max.message.bytes": "1000"})
    for value in ("x" * 2_000_000, "x" * 2_000):
        with pytest.raises(HomeostatError, match=f"topic {topic_name}: rows were not written: "):
            topics.write(topic_name, [value])
    assert topics.ends(topic_name) == {0: 0}


def test_spark_reads_what_was_written(
    kafka: KafkaBroker, topics: Topics, topic_name: str, local_spark: SparkSession
) -> None:
    topics.create(topic_name, 3)
    topics.write(topic_name, (f"row {number}" for number in range(1_000)))
    frame = local_spark.read.format("kafka").option("kafka.bootstrap.servers", kafka.servers)
    rows = frame.option("subscribe", topic_name).load().selectExpr("CAST(value AS STRING)").collect()
    assert {row.value for row in rows} == {f"row {number}" for number in range(1_000)}
