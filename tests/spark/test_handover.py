"""Queries that an application hands over to `hs.attach`: they are restarted with other values, and stay its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from pyspark.errors import StreamingQueryException

import homeostat as hs
from homeostat.core.errors import ConfigError
from homeostat.lab import ledger, source
from homeostat.lab.load_profile import Profile
from homeostat.runtime.attach import Attachment
from homeostat.runtime.launch import CAPABILITIES
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act import retries

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

WaitUntil = Callable[[Callable[[], bool], str], None]
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=3000.0), keys=50)
PARTITIONS = "spark.sql.shuffle.partitions"


@pytest.fixture(autouse=True)
def few_partitions(local_spark: SparkSession) -> Iterator[None]:
    before = str(local_spark.conf.get(PARTITIONS))
    local_spark.conf.set(PARTITIONS, "2")
    yield
    local_spark.conf.set(PARTITIONS, before)


def words(spark: SparkSession, home: Path, rows: int = 200) -> DataStreamWriter:
    """A plain query with a checkpoint and a limit of its own."""
    source.register(spark)
    lines = spark.readStream.format("homeostat").option("profile", PROFILE.to_json())
    counts = lines.option("rowsPerTrigger", str(rows)).load().groupBy("word").count()
    writer = counts.writeStream.outputMode("update").foreachBatch(ledger.write_counts(home / "ledger"))
    return writer.option("checkpointLocation", str(home / "own")).trigger(processingTime="500 milliseconds")


@pytest.fixture
def attach(local_spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Attachment]]:
    attachments: list[Attachment] = []

    def attach(**arguments: Any) -> Attachment:
        settings = tmp_path / "homeostat.toml"
        settings.write_text(f'store = "{tmp_path / "log.sqlite"}"\n')
        attachments.append(hs.attach(local_spark, config=settings, directory=tmp_path / "kept", **arguments))
        return attachments[-1]

    yield attach
    for each in attachments:
        each.stop()
    for query in local_spark.streams.active:
        query.stop()


def partitions(home: Path) -> int:
    offsets = max((home / "own" / "offsets").glob("[0-9]*"), key=lambda path: int(path.name))
    return int(json.loads(offsets.read_text().splitlines()[1])["conf"][PARTITIONS])


def test_it_gets_other_state_partitions_and_every_row_counts_once(
    local_spark: SparkSession,
    attach: Callable[..., Attachment],
    tmp_path: Path,
    wait_until: WaitUntil,
    homeostat: Callable[..., Any],
) -> None:
    attached = attach(
        queries={"words": lambda spark: words(spark, tmp_path)}, rows_per_trigger=(50, 500), mode="regulate"
    )
    query = attached.queries["words"]
    first_run = query.runId

    def can_be_set(knob: str) -> bool:
        code: int = homeostat("apply", "set", knob, "--dry-run").code
        return code == 0

    def set_to(knob: str) -> None:
        result = homeostat("apply", "set", knob)
        assert result.code == 0, result.err

    def rows() -> int:
        progress = query.lastProgress
        return int(progress["numInputRows"]) if progress else 0

    wait_until(lambda: can_be_set("state_partitions.words=3"), "it is known that the query has state")
    assert partitions(tmp_path) == 2
    set_to("rows_per_trigger.words=300")
    wait_until(lambda: rows() == 300, "the limit changed without a restart")
    assert query.runId == first_run

    set_to("state_partitions.words=3")
    wait_until(lambda: query.runId != first_run and rows() == 300, "it was restarted, and still has the limit")
    assert partitions(tmp_path) == 3
    assert query.isActive
    assert query.awaitTermination(1) is False

    attached.stop()
    assert query.isActive
    assert [each.name for each in local_spark.streams.active] == ["words"]
    query.stop()
    assert query.awaitTermination() is None
    assert not query.isActive
    count = ledger.recorded_rows(tmp_path / "ledger", tmp_path / "own")
    assert count > 0
    assert ledger.check(tmp_path / "ledger", PROFILE, count) == []


def failing_once(home: Path) -> Callable[[DataFrame, int], None]:
    def write(batch: DataFrame, number: int) -> None:
        if number == 1 and not (home / "failed").exists():
            (home / "failed").touch()
            raise RuntimeError("the sink is away")

    return write


def test_one_that_is_started_through_homeostat_comes_back_after_a_failure_but_not_after_a_stop(
    local_spark: SparkSession, attach: Callable[..., Attachment], tmp_path: Path, wait_until: WaitUntil
) -> None:
    attached = attach()
    rows = local_spark.readStream.format("rate").option("rowsPerSecond", 20).load()
    writer = rows.writeStream.queryName("rows").foreachBatch(failing_once(tmp_path))
    query = attached.start(writer.option("checkpointLocation", str(tmp_path / "own")))
    first_run = query.runId
    wait_until(lambda: query.runId != first_run and query.lastProgress is not None, "it is back after its failure")
    assert query.isActive

    (running,) = local_spark.streams.active
    running.stop()
    assert query.awaitTermination(60) is True
    assert not query.isActive
    assert local_spark.streams.active == []


def failing(batch: DataFrame, number: int) -> None:
    raise RuntimeError("the sink is away for good")


def test_if_it_fails_too_often_its_last_error_is_raised(
    local_spark: SparkSession, attach: Callable[..., Attachment], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(retries, "MOST_FAILURES", 1)
    rows = local_spark.readStream.format("rate").load()
    writer = rows.writeStream.foreachBatch(failing).option("checkpointLocation", str(tmp_path / "own"))
    query = attach().start(writer, "rows")
    with pytest.raises(StreamingQueryException, match="the sink is away for good"):
        query.awaitTermination(60)
    assert not query.isActive


def test_what_cannot_be_restarted_is_started_as_it_is(
    local_spark: SparkSession,
    attach: Callable[..., Attachment],
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    attached = attach(queries={"once": lambda: words(local_spark, tmp_path).trigger(availableNow=True)})
    assert "Homeostat never restarts query once, because its trigger availableNow ends it" in capsys.readouterr().err
    assert attached.queries["once"].name == "once"
    attached.queries["once"].stop()
    rows = local_spark.readStream.format("rate").load()
    query = attached.start(rows.writeStream.format("noop"), "lost")
    assert "Homeostat never restarts query lost, because it has no checkpointLocation" in capsys.readouterr().err
    query.stop()


@pytest.mark.parametrize(
    ("queries", "message"),
    [
        ({"a/b": lambda: None}, "'a/b' is not a valid name for a query"),
        ({"words": lambda: None}, "query words requires a writer, not NoneType"),
    ],
)
def test_what_is_no_query_is_refused_and_nothing_stays(
    local_spark: SparkSession, attach: Callable[..., Attachment], tmp_path: Path, queries: Any, message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        attach(queries=queries)
    assert local_spark.streams.active == []
    assert not (tmp_path / "kept" / "driver.json").exists()
    assert not (tmp_path / "kept" / CAPABILITIES).exists()
