"""One local Spark session for the tests that need no cluster: checkpoints, keyed state and Kafka."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from homeostat.core.errors import HomeostatError
from homeostat.spark.cluster import jars
from homeostat.spark.cluster.kafka_connector import connector_jars, with_connector
from homeostat.spark.cluster.session import build_session, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def local_spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session that other tests left running, else a local one: there is one Spark context per process."""
    from pyspark.sql import SparkSession

    running = SparkSession.getActiveSession()
    if running is not None:
        yield running
        return
    with suppress(HomeostatError):  # the tests on Kafka say what is missing
        jars.fetch(connector_jars(), print)
    conf = spark_conf(
        master="local[2]",
        app_name="tests",
        executors=1,
        directory=tmp_path_factory.mktemp("session"),
        extra={"spark.ui.enabled": "false", "spark.driver.memory": "512m"},
    )
    session = build_session(with_connector(conf))
    yield session
    session.stop()
