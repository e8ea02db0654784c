"""Offsets that batches ended at are those of a consumer group, and what prevents that is reported."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress

import pytest

from homeostat.core.events import Event, Failure
from homeostat.lab.kafka.broker import KafkaBroker, free_port
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.clocks import STEADY
from homeostat.spark.sense import kafka_client
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.kafka_client import KafkaClient
from homeostat.spark.sense.kafka_source import KafkaSource
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.progress import Progress, SourceProgress
from homeostat.spark.sense.published_offsets import PublishedOffsets
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.source_formats import SourceOptions
from homeostat.spark.sense.source_watch import SourceWatch

WaitUntil = Callable[[Callable[[], bool], str], None]


def options(servers: str, topic: str) -> SourceOptions:
    return SourceOptions("kafka", {"kafka.bootstrap.servers": servers, "subscribe": topic})


def committed(topics: Topics, group: str, topic: str) -> dict[int, int] | None:
    """None while the broker still makes the topic in which it keeps groups."""
    from confluent_kafka import KafkaException

    with suppress(KafkaException):
        return topics.committed(group, topic)
    return None


def test_a_watched_query_is_published_only_if_that_is_asked_for(
    kafka: KafkaBroker, topics: Topics, topic_name: str, wait_until: WaitUntil
) -> None:
    topics.create(topic_name, 2)
    topics.write(topic_name, ["row"] * 10, partition=lambda number: number % 2)
    handle = QueryHandle(topic_name, "run-1", sources=(options(kafka.servers, topic_name),))
    book = QueryBook(lambda: [handle], lambda reason: None)
    events: list[Event] = []
    watch = SourceWatch(book, GuardedWork(events.append, STEADY.now_s), events.append, STEADY.now_s)
    (run,) = book.running()
    group = f"shown-{topic_name}"

    def ends_at(*read: int) -> None:
        offset = {topic_name: {str(partition): number for partition, number in enumerate(read)}}
        run.query.latest = Progress(topic_name, "run-1", 0, 0.0, 1.0, (SourceProgress(1, 1, 1, offset),))

    def shows(*read: int) -> Callable[[], bool]:
        def looked() -> bool:
            watch.look()
            return committed(topics, group, topic_name) == dict(enumerate(read))

        return looked

    ends_at(4, 3)
    watch.publish_as("")
    wait_until(shows(), "the broker knows of no such group")
    watch.publish_as("shown-{query}")
    wait_until(shows(4, 3), "the offsets are those of the group")
    ends_at(5, 5)
    wait_until(shows(5, 5), "the next batch is published too")
    assert not [event for event in events if isinstance(event, Failure)]


def test_a_second_reader_of_the_same_topic_does_not_overwrite_the_first(
    kafka: KafkaBroker, topics: Topics, topic_name: str, wait_until: WaitUntil
) -> None:
    topics.create(topic_name, 1)
    source = KafkaSource("orders", topic_name, KafkaClient(options(kafka.servers, topic_name)), STEADY.now_s)
    events: list[Event] = []
    published = PublishedOffsets(topic_name, GuardedWork(events.append, STEADY.now_s), STEADY.now_s)

    def is_shown() -> bool:
        published.publish(("orders", 0), source, {topic_name: {"0": 3}})
        published.publish(("bills", 0), source, {topic_name: {"0": 7}})
        return committed(topics, topic_name, topic_name) == {0: 3}

    wait_until(is_shown, "the first query is shown")
    (note,) = events
    assert isinstance(note, Failure)
    assert note.harmless
    assert f"{topic_name} is read by query orders and by query bills" in note.error


def test_a_broker_that_refuses_is_asked_again_after_a_while_and_named_if_that_goes_on(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(kafka_client, "LIMIT_S", 0.1)
    now_s = [0.0]
    source = KafkaSource("orders", "t", KafkaClient(options(f"127.0.0.1:{free_port()}", "t")), lambda: now_s[0])
    events: list[Event] = []
    published = PublishedOffsets("group", GuardedWork(events.append, lambda: now_s[0]), lambda: now_s[0])

    def tried(at_s: float) -> None:
        now_s[0] = at_s
        published.publish(("orders", 0), source, {"t": {"0": 3}})

    tried(0.0)
    assert events == []
    tried(31.0)
    (note,) = events
    assert isinstance(note, Failure)
    assert "the offsets of orders cannot be committed for group group" in note.error
    tried(32.0)  # too soon: the broker is not asked
    assert len(events) == 1
