"""One Kafka broker for all tests that read or write topics."""

from __future__ import annotations

import uuid
from collections.abc import Iterator

import pytest

from homeostat.core.errors import HomeostatError
from homeostat.lab.kafka.broker import KafkaBroker, broker_jars
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.cluster import jars
from homeostat.spark.cluster.kafka_connector import connector_jars


@pytest.fixture(scope="session")
def kafka_jars() -> None:
    """Fetched once for this user. Where that fails the tests are skipped, which CI does not allow."""
    try:
        jars.fetch((*broker_jars(), *connector_jars()), print)
    except HomeostatError as error:
        pytest.skip(f"no Kafka: {error.line}")


@pytest.fixture(scope="session")
def kafka(kafka_jars: None, tmp_path_factory: pytest.TempPathFactory) -> Iterator[KafkaBroker]:
    """The broker of all tests: each start of one costs as much processor time as many tests. A test that stops it uses
    `stopped_kafka`."""
    pytest.importorskip("confluent_kafka", reason="no Kafka: pip install 'homeostat[kafka]'")
    with KafkaBroker(tmp_path_factory.mktemp("kafka")) as broker:
        yield broker


@pytest.fixture
def stopped_kafka(kafka: KafkaBroker) -> Iterator[KafkaBroker]:
    """The broker, for a test that stops it. After the test it runs again."""
    yield kafka
    kafka.start()


@pytest.fixture(scope="session")
def topics(kafka: KafkaBroker) -> Topics:
    return Topics(kafka.servers)


@pytest.fixture
def topic_name() -> str:
    """A name that no other test uses."""
    return f"topic-{uuid.uuid4().hex[:8]}"
