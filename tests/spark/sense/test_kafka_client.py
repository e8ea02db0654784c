"""Settings for Spark's client, as librdkafka wants them, and answers of a real broker."""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from contextlib import suppress

import pytest

from homeostat.lab.kafka.broker import KafkaBroker, free_port
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.sense.kafka_client import CannotAskError, KafkaClient, client_settings
from homeostat.spark.sense.source_formats import SourceOptions

JAAS = 'org.apache.kafka.common.security.plain.PlainLoginModule required username="me" password="s3;cret";'


def source(**options: str) -> SourceOptions:
    return SourceOptions("kafka", {name.replace("__", "."): value for name, value in options.items()})


def test_a_password_for_the_java_client_is_one_for_ours() -> None:
    options = {
        "kafka.bootstrap.servers": "a:1",
        "kafka.security.protocol": "SASL_SSL",
        "kafka.sasl.mechanism": "SCRAM-SHA-512",
        "kafka.sasl.jaas.config": JAAS,
        "kafka.ssl.truststore.location": "/ca.pem",
        "kafka.ssl.truststore.type": "PEM",
        "kafka.max.poll.records": "5",
    }
    assert client_settings(SourceOptions("kafka", options)) == {
        "bootstrap.servers": "a:1",
        "security.protocol": "SASL_SSL",
        "sasl.mechanism": "SCRAM-SHA-512",
        "sasl.username": "me",
        "sasl.password": "s3;cret",
        "ssl.ca.location": "/ca.pem",
    }


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"kafka.security.protocol": "SASL_PLAINTEXT", "kafka.sasl.mechanism": "OAUTHBEARER"}, "OAUTHBEARER"),
        ({"kafka.security.protocol": "SASL_PLAINTEXT"}, "GSSAPI"),
        ({"kafka.security.protocol": "SSL", "kafka.ssl.truststore.location": "/store.jks"}, "Java keystore"),
        ({"kafka.ssl.keystore.location": "/store.jks"}, "Java keystore"),
    ],
)
def test_what_only_java_can_do_is_refused_with_the_reason(options: dict[str, str], reason: str) -> None:
    with pytest.raises(CannotAskError, match=reason):
        client_settings(SourceOptions("kafka", options))


def test_it_says_where_the_partitions_begin_and_end_and_for_how_long_rows_are_kept(
    kafka: KafkaBroker, topics: Topics, topic_name: str
) -> None:
    topics.create(topic_name, 2, {"retention.ms": "3600000"})
    before_s = time.time()
    topics.write(topic_name, ["a"] * 10, partition=lambda number: 0)
    topics.delete_rows(topic_name, 0, 4)
    client = KafkaClient(source(kafka__bootstrap__servers=kafka.servers, subscribe=f"{topic_name},missing"))
    state = client.topics()
    places = list(state.leaders)
    assert sorted(places) == [(topic_name, 0), (topic_name, 1)]
    assert all(state.leaders.values())
    assert state.missing_topics == ("missing",)
    assert client.firsts(places) == {(topic_name, 0): 4.0, (topic_name, 1): 0.0}
    assert client.ends(places) == {(topic_name, 0): 10.0, (topic_name, 1): 0.0}
    assert client.ends_at({(topic_name, 0): before_s - 60.0}) == {(topic_name, 0): 4.0}
    assert math.isnan(client.ends_at({(topic_name, 0): before_s + 3_600.0})[topic_name, 0])
    assert client.kept_s([topic_name]) == 3_600.0
    assert before_s - 1.0 <= client.newest_s(places) <= time.time() + 1.0
    assert math.isnan(client.newest_s([(topic_name, 1)]))


def test_a_pattern_and_an_assignment_name_topics_too(kafka: KafkaBroker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    for option, value in (("subscribePattern", f"{topic_name[:-1]}."), ("assign", f'{{"{topic_name}": [0]}}')):
        client = KafkaClient(source(kafka__bootstrap__servers=kafka.servers, **{option: value}))
        assert list(client.topics().leaders) == [(topic_name, 0)]


def test_published_offsets_are_seen_as_those_of_a_group(
    kafka: KafkaBroker, topics: Topics, topic_name: str, wait_until: Callable[[Callable[[], bool], str], None]
) -> None:
    topics.create(topic_name, 1)
    topics.write(topic_name, ["a"] * 10)
    client = KafkaClient(source(kafka__bootstrap__servers=kafka.servers, subscribe=topic_name))
    from confluent_kafka import KafkaException

    def is_seen() -> bool:
        with suppress(KafkaException):  # the broker refuses while it makes the topic in which it keeps groups
            client.publish("homeostat-orders", {(topic_name, 0): 7.0})
            return topics.committed("homeostat-orders", topic_name) == {0: 7}
        return False

    wait_until(is_seen, "the offsets of the group are seen")


def test_a_broker_that_is_down_is_an_error_within_seconds() -> None:
    client = KafkaClient(source(kafka__bootstrap__servers=f"127.0.0.1:{free_port()}", subscribe="orders"))
    began_s = time.monotonic()
    with pytest.raises(Exception, match=r"(?i)timed out|transport|broker"):
        client.topics()
    assert time.monotonic() - began_s < 60.0
