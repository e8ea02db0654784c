"""The ways to Spark's status give the same answers, and those that are closed are found out by trying."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.spark.sense.answering_source import AnsweringSource
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.sensor_error import SensorError
from homeostat.spark.sense.sql_executions import SqlExecution
from homeostat.spark.sense.status_source import StatusSource
from homeostat.spark.sense.status_store import StatusStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.spark
PATIENT_S = 60.0  # the machine may be busy with other tests
REFUSES = "org.apache.spark.deploy.yarn.AmIpFilter"  # the one that YARN puts before the driver's UI
CLOSED_PAGES = {
    "filtered": {
        "spark.ui.enabled": "true",
        "spark.ui.filters": REFUSES,
        f"spark.{REFUSES}.param.PROXY_HOSTS": "127.0.0.9",
        f"spark.{REFUSES}.param.PROXY_URI_BASES": "http://127.0.0.9:1/proxy",
    },
    "off": {"spark.ui.enabled": "false"},
}
# It attaches to a query with state, in one session after another, and prints what was seen.
APP = """\
import json, sys, time
from pathlib import Path

from homeostat.core.events import Failure, Observed
from homeostat.core.objective import Objective
from homeostat.spark.application import Application
from homeostat.spark.cluster.session import build_session, spark_conf

quiet = {"spark.driver.memory": "512m", "spark.sql.shuffle.partitions": "2"}
for name, conf in json.loads(sys.argv[2]).items():
    home = Path(sys.argv[1]) / name
    spark = build_session(
        spark_conf(master="local[2]", app_name="closed", executors=1, directory=home, extra=quiet | conf)
    )
    rows = spark.readStream.format("rate").option("rowsPerSecond", 50).load()
    counts = rows.groupBy((rows.value % 7).alias("key")).count()
    query = counts.writeStream.queryName("q").outputMode("complete").format("noop")
    query = query.option("checkpointLocation", str(home / "checkpoint")).trigger(processingTime="1 second").start()
    application = Application.around(spark, [query], Objective(), home / "app")
    tables, batches, failed = [], [], []
    application.publish_capabilities(tables.append)
    engine = application.engine("q")
    application.sensors.start()
    deadline = time.monotonic() + 240
    while len(batches) < 2 and time.monotonic() < deadline:
        for event in engine.wait(engine.now_s + 1.0):
            if isinstance(event, Observed) and event.observation.flows[0].rows > 0:
                batches.append(event.observation)
            elif isinstance(event, Failure):
                failed.append(event.error)
    report = {
        "way": application.status.way,
        "failed": failed,
        "rows": [
            [each.flows[0].rows, max(t.rows.sum() for t in each.tasks.values())] for each in batches if each.tasks
        ],
        "workers": [list(each.workers.ids) for each in batches],
        "before": {line["what"]: line["seen"] for line in tables[0]},
        "after": {line["what"]: line["seen"] for line in tables[-1]},
    }
    print(f"REPORT {name} {json.dumps(report)}", flush=True)
    application.stop()
"""


@pytest.fixture
def store(spark: SparkSession) -> Iterator[StatusStore]:
    with closing(StatusStore(spark, first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)) as source:
        yield source


@pytest.fixture
def rest(spark: SparkSession) -> Iterator[RestClient]:
    url = str(spark.sparkContext.uiWebUrl)
    with closing(RestClient(url, first_timeout_s=PATIENT_S, timeout_s=PATIENT_S)) as source:
        yield source


def settled(executors: list[Any]) -> list[Any]:
    """What does not change while nothing runs."""
    return [(each.id, each.host, each.slots, each.alive, each.storage_bytes, each.loss) for each in executors]


def test_the_store_gives_the_answers_of_the_rest_api(
    spark: SparkSession, store: StatusStore, rest: RestClient, tmp_path: Path
) -> None:
    frame = spark.range(0, 600, 1, 60)
    frame.groupBy((frame.id % 3).alias("key")).count().write.json(str(tmp_path / "written"))
    newest = rest.newest_sql()
    assert store.newest_sql() == newest >= 0
    execution = rest.sql(newest, SqlExecution.read)
    assert execution is not None
    assert execution.metrics["number of written files"] > 0
    assert store.sql(newest, SqlExecution.read) == execution
    assert store.jobs() == rest.jobs()
    for number in execution.jobs:
        job = rest.job(number)
        assert job is not None
        assert store.job(number) == job
        for stage in job.stages:
            assert store.stage(stage) == rest.stage(stage)
            assert store.stage_with_tasks(stage) == rest.stage_with_tasks(stage)
            for attempt in rest.stage(stage):
                page = rest.tasks(stage, attempt.attempt, 10, 20)
                assert store.tasks(stage, attempt.attempt, 10, 20) == page
    assert settled(store.executors()) == settled(rest.executors())
    memory = {name: value for name, value in rest.properties().items() if name.startswith("spark.memory.")}
    assert store.properties() == memory


@pytest.mark.parametrize("way", ["store", "rest"])
def test_what_spark_does_not_know_is_no_error(way: str, request: pytest.FixtureRequest) -> None:
    source: StatusSource = request.getfixturevalue(way)
    assert source.job(1_000_000) is None
    assert source.stage(1_000_000) == []
    assert source.stage_with_tasks(1_000_000) == []
    assert source.tasks(1_000_000, 0, 0, 10)[0] == 0
    assert source.sql(1_000_000, SqlExecution.read) is None


def test_a_store_that_answers_late_keeps_nobody_waiting(spark: SparkSession) -> None:
    with closing(StatusStore(spark, first_timeout_s=0.0)) as source, pytest.raises(SensorError) as raised:
        source.executors()
    assert raised.value.kind == "late"


def test_the_way_that_answers_is_asked_again(store: StatusStore) -> None:
    """Nobody listens at the first address."""
    with closing(AnsweringSource(RestClient("http://127.0.0.1:1"), store)) as source:
        assert source.executors()
        assert source.way == store.way
        assert "REST API" in "".join(source.errors)


def test_tasks_are_seen_without_an_open_page(tmp_path: Path) -> None:
    program = tmp_path / "app.py"
    program.write_text(APP)
    result = subprocess.run(
        [sys.executable, program, tmp_path, json.dumps(CLOSED_PAGES)],
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    lines = [line.split(" ", 2)[1:] for line in result.stdout.splitlines() if line.startswith("REPORT ")]
    answers = {name: json.loads(text) for name, text in lines}
    assert answers.keys() == CLOSED_PAGES.keys(), result.stderr[-3000:]
    for answer in answers.values():
        assert answer["way"] == "the driver's status store"
        assert len(answer["rows"]) == len(answer["workers"]) >= 2, answer["failed"]
        assert all(in_batch == in_tasks for in_batch, in_tasks in answer["rows"])
        assert all(ids == ["driver"] for ids in answer["workers"])
        assert answer["failed"] == []
        for what in ("progress of queries", "executors", "stages and tasks of batches"):
            assert not answer["before"][what], "claimed before it was seen"
            assert answer["after"][what]
