"""A Kafka source over time: what waits, since when, and what happens to its topic."""

from __future__ import annotations

import math
from collections.abc import Callable

import pytest

from homeostat.core.source_sample import SourceSample
from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.clocks import STEADY
from homeostat.spark.sense import kafka_source
from homeostat.spark.sense.kafka_client import KafkaClient
from homeostat.spark.sense.kafka_source import KafkaSource, read_offsets
from homeostat.spark.sense.source_formats import SourceOptions

WaitUntil = Callable[[Callable[[], bool], str], None]


@pytest.fixture(autouse=True)
def _looks_at_topics_every_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(kafka_source, "TOPICS_EVERY_S", 0.0)


def watched(servers: str, topic: str) -> KafkaSource:
    options = SourceOptions("kafka", {"kafka.bootstrap.servers": servers, "subscribe": topic})
    return KafkaSource("orders", topic, KafkaClient(options), STEADY.now_s)


def answer(source: KafkaSource, read: object, rows_per_offset: float = 1.0) -> SourceSample:
    """A busy machine may need more than one request for it."""
    deadline_s = STEADY.now_s() + 120.0
    while (sample := source.look(read, rows_per_offset)).silent_s > 0:
        assert STEADY.now_s() < deadline_s, sample.error
    return sample


def offsets(topic: str, *read: int) -> dict[str, dict[str, int]]:
    return {topic: {str(partition): offset for partition, offset in enumerate(read)}}


def test_what_waits_is_known_in_each_partition_and_since_when(
    kafka: KafkaBroker, topics: Topics, topic_name: str, wait_until: WaitUntil
) -> None:
    topics.create(topic_name, 2)
    source = watched(kafka.servers, topic_name)
    answer(source, None)
    topics.write(topic_name, ["row"] * 30, partition=lambda number: number % 3 % 2)
    read = offsets(topic_name, 5, 10)
    sample = answer(source, read)
    pending = {partition.name: partition.pending for partition in sample.partitions}
    assert pending == {f"{topic_name}-0": 15.0, f"{topic_name}-1": 0.0}
    assert sample.pending_rows == 15.0
    assert answer(source, read, 0.5).pending_rows == 7.5
    assert sample.partitions[1].lag_s == 0.0
    lags_s: list[float] = []

    def has_grown() -> bool:
        """The first answers may not know it yet."""
        lags_s.extend(lag_s for lag_s in [answer(source, read).lag_s] if math.isfinite(lag_s))
        return bool(lags_s) and lags_s[-1] >= min(lags_s) + 1.0

    wait_until(has_grown, "the lag has grown by a second")
    assert source.end_at(STEADY.now_s()) == 30.0
    assert math.isnan(source.end_at(0.0))


def test_the_age_of_a_backlog_from_before_the_watch_is_looked_up(
    kafka: KafkaBroker, topics: Topics, topic_name: str, wait_until: WaitUntil
) -> None:
    topics.create(topic_name, 1)
    began_s = STEADY.now_s()
    topics.write(topic_name, ["row"] * 10)
    source = watched(kafka.servers, topic_name)
    samples: list[SourceSample] = []

    def age_is_known() -> bool:
        samples.append(answer(source, offsets(topic_name, 3)))
        return math.isfinite(samples[-1].lag_s)

    wait_until(age_is_known, "the age of the backlog is known")
    assert samples[-1].lag_s > 0.0
    # The nearest time that is asked for may be older than the rows by the step to it.
    assert samples[-1].lag_s <= STEADY.now_s() - began_s + max(kafka_source._AGES_S[:4])


def test_partitions_that_are_added_rows_that_expire_and_a_topic_that_goes_are_seen(
    kafka: KafkaBroker, topics: Topics, topic_name: str, wait_until: WaitUntil
) -> None:
    topics.create(topic_name, 1)
    topics.write(topic_name, ["row"] * 10)
    source, read = watched(kafka.servers, topic_name), offsets(topic_name, 2)
    assert answer(source, read).expired_rows == 0.0
    topics.delete_rows(topic_name, 0, 6)
    sample = answer(source, read)
    assert (sample.expired_rows, sample.pending_rows) == (4.0, 4.0)
    topics.add_partitions(topic_name, 3)
    topics.write(topic_name, ["row"] * 5, partition=lambda number: 2)
    sample = answer(source, read)
    # Spark reads new partitions from their beginning.
    assert [partition.pending for partition in sample.partitions] == [4.0, 0.0, 5.0]
    topics.delete(topic_name)
    wait_until(lambda: answer(source, read).missing_topics == (topic_name,), "the topic is gone")


def test_a_broker_that_stops_is_silent_and_one_that_is_back_is_not(
    stopped_kafka: KafkaBroker, topics: Topics, topic_name: str
) -> None:
    topics.create(topic_name, 1)
    topics.write(topic_name, ["row"] * 10)
    source, read = watched(stopped_kafka.servers, topic_name), offsets(topic_name, 4)
    assert answer(source, read).pending_rows == 6.0
    stopped_kafka.stop()
    sample = source.look(read, 1.0)
    assert sample.silent_s > 0.0
    assert sample.error
    assert sample.pending_rows == 6.0  # as of the last answer
    stopped_kafka.start()
    sample = answer(source, read)
    assert (sample.silent_s, sample.pending_rows) == (0.0, 6.0)


def test_an_offset_of_another_source_is_none_of_ours() -> None:
    assert read_offsets({"logOffset": 7}) == {}
    assert read_offsets(7) == {}
    assert read_offsets(None) == {}
