"""Topics of a broker: make and delete them, write rows, and read every row with its place."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from homeostat.core.errors import ConfigError, HomeostatError

if TYPE_CHECKING:
    from confluent_kafka import Message, Producer
    from confluent_kafka.admin import AdminClient

LIMIT_S = 60.0
INSTALL = "pip install 'homeostat[kafka]'"
_SILENCE_S, _LOOK_AGAIN_S = 30.0, 0.1


class Row(NamedTuple):
    """One row of a topic. `written_s` is when it was written, by the broker's or the writer's clock."""

    partition: int
    offset: int
    key: bytes | None
    value: bytes | None
    written_s: float
    headers: tuple[tuple[str, bytes], ...] = ()


class Writer:
    """Writes rows into a topic. The rows of a partition stay in order, and none is written twice."""

    def __init__(self, servers: str, topic: str, settings: Mapping[str, str] | None = None) -> None:
        from confluent_kafka import Producer

        self._topic = topic
        self._failures: list[str] = []
        self._producer: Producer = Producer(
            {"bootstrap.servers": servers, "linger.ms": 20, "enable.idempotence": True, **(settings or {})}
        )

    def put(self, value: bytes | str, key: bytes | str | None = None, partition: int = -1) -> None:
        """Hand a row to the client, which sends it soon."""
        from confluent_kafka import KafkaException

        while True:
            try:
                self._producer.produce(self._topic, value, key, partition=partition, on_delivery=self._note)
                break
            except BufferError:
                self._producer.poll(0.1)
            except KafkaException as error:
                raise self._error(str(error)) from error
        self._producer.poll(0)

    def check(self) -> None:
        """Raises a HomeostatError if the broker has refused a row, or has not taken it in time."""
        self._producer.poll(0)
        if self._failures:
            raise self._error(self._failures[0])

    def finish(self) -> None:
        """Wait until the broker has all rows."""
        if self._producer.flush(LIMIT_S):
            self._failures.append("no answer")
        self.check()

    def _error(self, reason: str) -> HomeostatError:
        return HomeostatError(f"rows were not written: {reason}", where=f"topic {self._topic}")

    def _note(self, error: object, message: object) -> None:
        if error is not None:
            self._failures.append(str(error))


class Topics:
    """`servers` is the value of `kafka.bootstrap.servers`."""

    def __init__(self, servers: str) -> None:
        try:
            from confluent_kafka.admin import AdminClient
        except ImportError as error:
            raise ConfigError("confluent-kafka is not installed", fix=INSTALL) from error
        self.servers = servers
        self._admin: AdminClient = AdminClient({"bootstrap.servers": servers})

    def create(self, name: str, partitions: int = 1, settings: Mapping[str, str] | None = None) -> None:
        """Create a topic, and return when every partition has a leader that answers."""
        from confluent_kafka.admin import NewTopic

        topic = NewTopic(name, partitions, 1, config=dict(settings or {}))
        self._await(self._admin.create_topics([topic]))
        self._until_led(name, partitions)

    def add_partitions(self, name: str, partitions: int) -> None:
        """Give a topic this many partitions, more than it has."""
        from confluent_kafka.admin import NewPartitions

        self._await(self._admin.create_partitions([NewPartitions(name, partitions)]))
        self._until_led(name, partitions)

    def delete(self, name: str) -> None:
        self._await(self._admin.delete_topics([name]))

    def set(self, name: str, settings: Mapping[str, str]) -> None:
        """Change settings of a topic."""
        from confluent_kafka.admin import AlterConfigOpType, ConfigEntry, ConfigResource, ResourceType

        entries = [
            ConfigEntry(key, value, incremental_operation=AlterConfigOpType.SET) for key, value in settings.items()
        ]
        resource = ConfigResource(ResourceType.TOPIC, name, incremental_configs=entries)
        self._await(self._admin.incremental_alter_configs([resource]))

    def delete_rows(self, name: str, partition: int, before: int) -> None:
        """Delete the rows of a partition before this offset, as retention would."""
        from confluent_kafka import TopicPartition

        self._await(self._admin.delete_records([TopicPartition(name, partition, before)]))

    def ends(self, name: str) -> dict[int, int]:
        """The offset after the last row of each partition. Waits until a broker that has just started knows it."""
        from confluent_kafka import KafkaError, KafkaException

        until_s = time.monotonic() + LIMIT_S
        starting = (
            KafkaError.UNKNOWN_LEADER_EPOCH,
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.LEADER_NOT_AVAILABLE,
        )
        while True:
            try:
                return self._ends(name)
            except KafkaException as error:
                if error.args[0].code() not in starting or time.monotonic() > until_s:
                    raise
                time.sleep(_LOOK_AGAIN_S)

    def _ends(self, name: str) -> dict[int, int]:
        from confluent_kafka import TopicPartition
        from confluent_kafka.admin import OffsetSpec

        partitions = self._admin.list_topics(name, timeout=LIMIT_S).topics[name].partitions
        wishes = {TopicPartition(name, number): OffsetSpec.latest() for number in partitions}
        answers = self._admin.list_offsets(wishes, request_timeout=LIMIT_S)
        return {place.partition: answer.result(LIMIT_S).offset for place, answer in answers.items()}

    def committed(self, group: str, name: str) -> dict[int, int]:
        """The offsets that a consumer group has committed."""
        from confluent_kafka import ConsumerGroupTopicPartitions, TopicPartition

        places = [TopicPartition(name, partition) for partition in self.ends(name)]
        (answer,) = self._admin.list_consumer_group_offsets([ConsumerGroupTopicPartitions(group, places)]).values()
        offsets = answer.result(LIMIT_S).topic_partitions
        return {place.partition: place.offset for place in offsets if place.offset >= 0}

    def write(
        self,
        name: str,
        values: Iterable[bytes | str],
        key: Callable[[int], bytes | str | None] = lambda number: None,
        partition: Callable[[int], int] = lambda number: -1,
        settings: Mapping[str, str] | None = None,
    ) -> int:
        """Write rows and wait until the broker has them all. `key` and `partition` are called with the row's number."""
        writer = Writer(self.servers, name, settings)
        count = 0
        for count, value in enumerate(values, 1):
            writer.put(value, key(count - 1), partition(count - 1))
        writer.finish()
        return count

    def rows(self, name: str, *, committed_only: bool = True) -> Iterator[Row]:
        """Every row that the topic has now, partition by partition."""
        from confluent_kafka import Consumer, TopicPartition

        ends = self.ends(name)
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": "homeostat-reader",
                "enable.auto.commit": False,
                "enable.partition.eof": True,
                "isolation.level": "read_committed" if committed_only else "read_uncommitted",
            }
        )
        try:
            for partition, end in ends.items():
                consumer.assign([TopicPartition(name, partition, 0)])
                yield from self._of_partition(consumer.poll, partition, end)
        finally:
            consumer.close()

    def _of_partition(self, poll: Callable[[float], Message | None], partition: int, end: int) -> Iterator[Row]:
        from confluent_kafka import KafkaError

        while end:
            message = poll(_SILENCE_S)
            if message is None:
                raise HomeostatError(f"no answer within {_SILENCE_S:.0f} s", where=self.servers)
            error = message.error()
            if error is not None:
                if error.code() == KafkaError._PARTITION_EOF:
                    return
                raise HomeostatError(str(error), where=self.servers)
            offset = message.offset() or 0
            written_s = message.timestamp()[1] / 1000.0
            headers = tuple(message.headers() or ())
            yield Row(partition, offset, message.key(), message.value(), written_s, headers)

    def _until_led(self, name: str, partitions: int) -> None:
        from confluent_kafka import KafkaException

        deadline = time.monotonic() + LIMIT_S
        while time.monotonic() < deadline:
            topic = self._admin.list_topics(timeout=LIMIT_S).topics.get(name)
            if topic is not None and sum(part.leader >= 0 for part in topic.partitions.values()) == partitions:
                with suppress(KafkaException):  # a leader does not know at once that it is one
                    self.ends(name)
                    return
            time.sleep(0.05)
        raise HomeostatError(f"not all {partitions} partitions of the topic have a leader", where=f"topic {name}")

    def _await(self, answers: Mapping[Any, Any]) -> None:
        for answer in answers.values():
            answer.result(LIMIT_S)
