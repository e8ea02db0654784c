"""One embedded cluster and one session for all tests on Spark: they are slow to start."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

import homeostat.lab.source_registration  # noqa: F401 - makes the experiment source known
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors, at_once
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.spark.cluster.session import build_session, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

EXECUTORS_AT_START = 2
MOST_EXECUTORS = 6  # a small machine cannot start more beside its other work
LIMIT_S = 300.0
LOOK_AGAIN_S = 0.05


@pytest.fixture(scope="session")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedCluster]:
    """Three workers on 127.0.0.2, 127.0.0.3 and 127.0.0.4."""
    with EmbeddedCluster(tmp_path_factory.mktemp("cluster"), workers=3) as running:
        yield running


@pytest.fixture(scope="session")
def spark(cluster_spark: SparkSession) -> SparkSession:
    """The session on the cluster, unless a directory of tests defines a session of its own."""
    return cluster_spark


@pytest.fixture(scope="session")
def cluster_spark(cluster: EmbeddedCluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    """The session all tests share, with two executors of one core at its start, and never more than six."""
    conf = spark_conf(
        master=cluster.master_url,
        app_name="tests",
        executors=EXECUTORS_AT_START,
        directory=tmp_path_factory.mktemp("session"),
        extra={"spark.dynamicAllocation.maxExecutors": str(MOST_EXECUTORS)},
    )
    session = build_session(conf)
    _wait_until(lambda: len(_live_executors(session)) >= EXECUTORS_AT_START, "the executors are up")
    yield session
    session.stop()


@pytest.fixture
def live_executors(spark: SparkSession) -> Callable[[], list[str]]:
    """Ids of the executors that Spark counts as alive at the time of the call."""
    return lambda: _live_executors(spark)


@pytest.fixture
def two_executors(spark: SparkSession) -> Iterator[None]:
    """Leaves two executors behind, as other tests that use the session expect."""
    yield
    executors = Executors(spark)
    executors.take_over(EXECUTORS_AT_START)
    if len(executors.alive()) > EXECUTORS_AT_START:
        executors.shrink(EXECUTORS_AT_START, at_once, Deadline.after(LIMIT_S))
    executors.grow(EXECUTORS_AT_START, Deadline.after(LIMIT_S))


@pytest.fixture(scope="session")
def wait_until() -> Callable[[Callable[[], bool], str], None]:
    """`wait_until(condition, what)` polls; its limit only makes a broken test end."""
    return _wait_until


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A directory for checkpoints, sinks and control files of one test."""
    return tmp_path


def _live_executors(session: SparkSession) -> list[str]:
    executors = session.sparkContext._jsc.sc().statusStore().executorList(True)
    ids = [str(executors.apply(index).id()) for index in range(executors.size())]
    return [identity for identity in ids if identity != "driver"]


def _wait_until(condition: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < deadline, f"waited {LIMIT_S:.0f} s, but not: {what}"
        time.sleep(LOOK_AGAIN_S)
