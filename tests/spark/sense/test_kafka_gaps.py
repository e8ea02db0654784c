"""A topic that transactions write to has offsets that are no rows, and a query that has read them all is not behind."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.clocks import STEADY
from homeostat.spark.sense.kafka_client import KafkaClient
from homeostat.spark.sense.kafka_source import KafkaSource
from homeostat.spark.sense.known_queries import KnownQuery
from homeostat.spark.sense.progress import Progress, read_progress, row_shares
from homeostat.spark.sense.source_formats import SourceOptions
from homeostat.spark.sense.stage_names import NameBook

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def write(servers: str, topic: str, *transactions: tuple[int, bool]) -> None:
    """So many rows in each transaction, which is committed or aborted."""
    from confluent_kafka import Producer

    producer = Producer({"bootstrap.servers": servers, "transactional.id": topic})
    producer.init_transactions(60.0)
    for rows, is_committed in transactions:
        producer.begin_transaction()
        for number in range(rows):
            producer.produce(topic, f"row {number}", key=str(number), partition=0)
        producer.flush(60.0)
        (producer.commit_transaction if is_committed else producer.abort_transaction)(60.0)


def read(spark: SparkSession, options: dict[str, str], checkpoint: Path) -> list[Progress]:
    """What the batches that read everything report."""
    rows = spark.readStream.format("kafka").options(**options).load()
    writer = rows.writeStream.format("noop").option("checkpointLocation", str(checkpoint))
    query: Any = writer.trigger(availableNow=True).start()
    query.awaitTermination()
    return [read_progress(json.loads(report.json)) for report in query.recentProgress]


def test_offsets_without_rows_are_no_backlog(
    kafka: KafkaBroker, topics: Topics, topic_name: str, local_spark: SparkSession, tmp_path: Path
) -> None:
    topics.create(topic_name, 1, {"cleanup.policy": "compact"})
    options = {
        "kafka.bootstrap.servers": kafka.servers,
        "subscribe": topic_name,
        "kafka.isolation.level": "read_committed",
        "startingOffsets": "earliest",
        "maxOffsetsPerTrigger": "101",
    }
    sources, query = (SourceOptions("kafka", options),), KnownQuery(NameBook("q"))
    source = KafkaSource("q", topic_name, KafkaClient(sources[0]), STEADY.now_s)

    write(kafka.servers, topic_name, (100, True), (50, False), (100, True), (50, False))
    batches = read(local_spark, options, tmp_path)
    for progress in batches:
        query.add_shares(row_shares(sources, progress))
    share, last = query.rows_per_offset[0], batches[-1].sources[0]
    assert last.rows == 0.0  # nothing but the end of the last transaction
    assert 0.4 < share < 0.6  # of the 203 offsets after the first batch, about half are rows
    sample = source.look({topic_name: {"0": 253}}, share)
    assert (sample.partitions[0].pending, sample.pending_rows) == (51.0, 51.0 * share)
    sample = source.look(last.offset, share)
    assert (sample.pending_rows, sample.lag_s) == (0.0, 0.0)
