"""Asks a Kafka broker for offsets, timestamps and settings of topics. It reads no rows and joins no group."""

from __future__ import annotations

import json
import logging
import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from homeostat.core.observation import NAN
from homeostat.spark.sense.source_formats import SourceOptions

# One request may take this long. Brokers are asked every second, so that a later answer is as good as none. A choice.
LIMIT_S = 3.0
INSTALL = "pip install 'homeostat[kafka]'"
_PREFIX = "kafka."
# Settings of Spark's Java client that have the same name and meaning in librdkafka.
_SAME = ("bootstrap.servers", "security.protocol", "sasl.username", "sasl.password", "client.dns.lookup")
_JAAS = "sasl.jaas.config"
_JAAS_FIELD = re.compile(r"""(username|password)\s*=\s*(?:"([^"]*)"|'([^']*)'|([^\s;]+))""")
_PASSWORDS = ("PLAIN", "SCRAM-SHA-256", "SCRAM-SHA-512")
_PEM = {"ssl.truststore.certificates": "ssl.ca.pem"}

Place = tuple[str, int]  # topic and partition


class CannotAskError(Exception):
    """Homeostat cannot ask this broker, for a reason that does not go away by itself."""


@dataclass(frozen=True, slots=True)
class TopicState:
    """The partitions of the topics, with or without a leader, and the topics that do not exist."""

    leaders: Mapping[Place, bool] = field(default_factory=dict)
    missing_topics: tuple[str, ...] = ()


def client_settings(source: SourceOptions) -> dict[str, str]:
    """The settings for librdkafka. Raises CannotAskError if those for Spark have no equivalent."""
    spark_settings = {
        name.lower().removeprefix(_PREFIX): value
        for name, value in source.options.items()
        if name.lower().startswith(_PREFIX)
    }
    settings = {name: spark_settings[name] for name in _SAME if name in spark_settings}
    settings |= {pem: spark_settings[name] for name, pem in _PEM.items() if name in spark_settings}
    protocol = spark_settings.get("security.protocol", "PLAINTEXT").upper()
    if "SSL" in protocol and "ssl.truststore.location" in spark_settings and "ssl.ca.pem" not in settings:
        if spark_settings.get("ssl.truststore.type", "JKS").upper() != "PEM":
            raise CannotAskError("its certificates are in a Java keystore, which only Java can read")
        settings["ssl.ca.location"] = spark_settings["ssl.truststore.location"]
    if "ssl.keystore.location" in spark_settings:
        raise CannotAskError("its client certificate is in a Java keystore, which only Java can read")
    if protocol.startswith("SASL"):
        mechanism = spark_settings.get("sasl.mechanism", "GSSAPI")
        if mechanism not in _PASSWORDS:
            raise CannotAskError(f"it requires {mechanism}, but only {', '.join(_PASSWORDS)} are supported")
        settings |= {"sasl.mechanism": mechanism}
        for match in _JAAS_FIELD.finditer(spark_settings.get(_JAAS, "")):
            settings[f"sasl.{match[1]}"] = match[2] or match[3] or match[4] or ""
    return settings


class KafkaClient:
    """Every call returns or raises within a few seconds."""

    def __init__(self, source: SourceOptions) -> None:
        try:
            from confluent_kafka.admin import AdminClient
        except ImportError as error:
            raise CannotAskError(f"confluent-kafka is not installed: {INSTALL}") from error
        quiet = logging.getLogger("homeostat.kafka")
        quiet.addHandler(logging.NullHandler())
        quiet.propagate = False
        settings = {**client_settings(source), "log_level": 0, "error_cb": lambda error: None}
        self._connect: Callable[[], AdminClient] = lambda: AdminClient(settings, logger=quiet)
        self._admin = self._connect()
        self.servers = source.option("kafka.bootstrap.servers")
        self._isolation = source.option("kafka.isolation.level")
        self._topic_names = _topics(source)

    def topics(self) -> TopicState:
        """The topics that the source subscribes to, as they are now."""
        from confluent_kafka import TopicCollection

        names = self._topic_names if isinstance(self._topic_names, tuple) else self._matching(self._topic_names)
        if not names:
            return TopicState()
        leaders: dict[Place, bool] = {}
        missing_topics = []
        answers = self._admin.describe_topics(TopicCollection(list(names)), request_timeout=LIMIT_S)
        for name, answer in answers.items():
            try:
                for partition in answer.result(2 * LIMIT_S).partitions:
                    led = partition.leader is not None and partition.leader.id >= 0
                    leaders[name, partition.id] = led
            except Exception as error:
                if not _is_unknown(error):
                    raise
                missing_topics.append(name)
        return TopicState(leaders, tuple(missing_topics))

    def firsts(self, places: Collection[Place]) -> dict[Place, float]:
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(places, OffsetSpec.earliest()))

    def ends(self, places: Collection[Place]) -> dict[Place, float]:
        from confluent_kafka.admin import OffsetSpec

        return self._offsets(dict.fromkeys(places, OffsetSpec.latest()))

    def ends_at(self, moments_s: Mapping[Place, float]) -> dict[Place, float]:
        """The first offset that was written at a moment or after it; NaN if there is none."""
        from confluent_kafka.admin import OffsetSpec

        return self._offsets({place: OffsetSpec.for_timestamp(int(1000 * at_s)) for place, at_s in moments_s.items()})

    def newest_s(self, places: Collection[Place]) -> float:
        """When the newest row of these partitions was written, in seconds since 1970. The clock is that of its writer
        or of the broker, depending on the settings of the topic. NaN if they have no rows."""
        from confluent_kafka.admin import OffsetSpec

        answers = self._ask(dict.fromkeys(places, OffsetSpec.max_timestamp()))
        return max((answer.timestamp / 1000.0 for answer in answers.values() if answer.timestamp >= 0), default=NAN)

    def kept_s(self, topics: Collection[str]) -> float:
        """The shortest time for which these topics keep rows; NaN if they keep rows forever, or if it is unknown."""
        from confluent_kafka.admin import ConfigResource, ResourceType

        resources = [ConfigResource(ResourceType.TOPIC, topic) for topic in topics]
        if not resources:
            return NAN
        kept: list[float] = []
        for answer in self._admin.describe_configs(resources, request_timeout=LIMIT_S).values():
            settings = answer.result(2 * LIMIT_S)
            retention_ms = float(settings["retention.ms"].value)
            if retention_ms >= 0 and "delete" in str(settings["cleanup.policy"].value):
                kept.append(retention_ms / 1000.0)
        return min(kept, default=NAN)

    def publish(self, group: str, offsets: Mapping[Place, float]) -> None:
        """Commit offsets for a group that has no members, so that other tools see the lag."""
        from confluent_kafka import ConsumerGroupTopicPartitions, KafkaException, TopicPartition

        places = [TopicPartition(topic, partition, int(offset)) for (topic, partition), offset in offsets.items()]
        wish = [ConsumerGroupTopicPartitions(group, places)]
        try:
            for answer in self._admin.alter_consumer_group_offsets(wish, request_timeout=LIMIT_S).values():
                for place in answer.result(2 * LIMIT_S).topic_partitions:
                    if place.error is not None:
                        raise KafkaException(place.error)
        except KafkaException:
            # After an outage of the broker, a client can wait for the group's coordinator forever.
            self._admin = self._connect()
            raise

    def _offsets(self, wishes: Mapping[Place, Any]) -> dict[Place, float]:
        answers = self._ask(wishes)
        return {place: float(answer.offset) if answer.offset >= 0 else NAN for place, answer in answers.items()}

    def _ask(self, wishes: Mapping[Place, Any]) -> dict[Place, Any]:
        """The answers have an `offset` and, if a time was asked for, a `timestamp`."""
        from confluent_kafka import IsolationLevel, TopicPartition

        if not wishes:
            return {}
        level = (
            IsolationLevel.READ_COMMITTED if "read_committed" in self._isolation else IsolationLevel.READ_UNCOMMITTED
        )
        requests = {TopicPartition(topic, partition): spec for (topic, partition), spec in wishes.items()}
        answers = self._admin.list_offsets(requests, isolation_level=level, request_timeout=LIMIT_S)
        return {(place.topic, place.partition): answer.result(2 * LIMIT_S) for place, answer in answers.items()}

    def _matching(self, pattern: re.Pattern[str]) -> tuple[str, ...]:
        names = self._admin.list_topics(timeout=LIMIT_S).topics
        return tuple(sorted(name for name in names if pattern.fullmatch(name)))


def _topics(source: SourceOptions) -> tuple[str, ...] | re.Pattern[str]:
    """The topics that a source names, or the pattern that they match."""
    if names := source.option("subscribe"):
        return tuple(name.strip() for name in names.split(","))
    if assigned := source.option("assign"):
        return tuple(json.loads(assigned))
    return re.compile(source.option("subscribePattern"))


def _is_unknown(error: Exception) -> bool:
    """Whether the error means that a topic does not exist."""
    from confluent_kafka import KafkaError

    code: Callable[[], int] | None = getattr(error.args[0], "code", None) if error.args else None
    return code is not None and code() == KafkaError.UNKNOWN_TOPIC_OR_PART
