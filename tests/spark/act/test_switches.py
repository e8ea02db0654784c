"""Settings of real queries that commands switch on and off, with every row counted once."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Knob,
    Patch,
    Value,
)
from homeostat.core.events import Apply
from homeostat.lab import ledger, source
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act.capabilities import judge, look_around
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.query_launcher import ASYNC_OPTION, CHANGELOG
from homeostat.spark.act.step_runner import StepRunner
from homeostat.spark.act.switches import async_refusal, switch_values

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LIMIT_S = 180.0
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=200.0), keys=50)
CHANGES, ASYNC = Knob(CHANGELOG_CHECKPOINTING, "words"), Knob(ASYNC_PROGRESS, "words")
VALUES: Mapping[Knob, Value] = {Knob(TRIGGER_S, "words"): 0.5, Knob(STATE_PARTITIONS, "words"): 2}
Build = Callable[["SparkSession"], Any]


def counts(rows: DataFrame) -> Any:
    return rows.groupBy("word").count().writeStream.outputMode("update")


def experiment(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("homeostat").option("profile", PROFILE.to_json()).option("partitions", "2").load()


def rate(spark: SparkSession) -> DataFrame:
    return spark.readStream.format("rate").option("rowsPerSecond", "20").load().selectExpr("value % 5 AS word")


class Words:
    """A query, and commands to it as the loop sends them."""

    def __init__(self, spark: SparkSession, directory: Path, write: Build) -> None:
        source.register(spark)
        self.spark, self.checkpoint = spark, directory / "checkpoint"
        self.query = ManagedQuery(spark, "words", lambda values: write(spark), self.checkpoint, dict(VALUES))
        self._runner = StepRunner(None, [self.query], None, self.capabilities, lambda ids: ids, Event())

    def start(self) -> None:
        self.query.start(Deadline.after(LIMIT_S))
        self.query.values = {**switch_values(self.spark, self.query.query, "words"), **self.query.values}

    def capabilities(self) -> Capabilities:
        return judge(look_around(self.spark), [self.query]).capabilities

    def switch(self, knob: Knob, value: int) -> None:
        desired = self._runner.configuration().patched(Patch({knob: value}))
        answer = self._runner.run(Apply(f"{knob} {value}", 0.0, desired, (), LIMIT_S), Deadline.after(LIMIT_S))
        assert answer.applied, answer.detail
        assert self.query.values[knob] == value

    def numbers(self, log: str) -> list[int]:
        return sorted(int(file.name) for file in (self.checkpoint / log).iterdir() if file.name.isdecimal())

    def state_files(self, ending: str) -> int:
        return len(list((self.checkpoint / "state" / "0" / "0").glob(f"*.{ending}")))

    def await_batches(self, wait_until: WaitUntil, count: int = 3) -> None:
        goal = self.numbers("commits")[-1] + count
        wait_until(lambda: self.numbers("commits")[-1] >= goal, f"{count} more batches are done")


@pytest.fixture
def started(local_spark: SparkSession, tmp_path: Path) -> Iterator[Callable[[Build], Words]]:
    queries: list[Words] = []

    def start(write: Build) -> Words:
        queries.append(Words(local_spark, tmp_path, write))
        queries[-1].start()
        return queries[-1]

    yield start
    for words in queries:
        words.query.stop()


def test_changelog_checkpointing_is_switched_on_and_off_and_every_row_counts_once(
    started: Callable[[Build], Words], local_spark: SparkSession, tmp_path: Path, wait_until: WaitUntil
) -> None:
    sink = ledger.write_counts(tmp_path / "ledger")
    words = started(lambda spark: counts(experiment(spark)).foreachBatch(sink))
    words.await_batches(wait_until)
    assert words.query.values[CHANGES] == words.state_files("changelog") == 0

    words.switch(CHANGES, 1)
    words.await_batches(wait_until)
    assert words.state_files("changelog") >= 3
    assert local_spark.conf.get(CHANGELOG, None) is None, "other queries of the session keep their setting"

    words.switch(CHANGES, 0)
    snapshots, changelogs = words.state_files("zip"), words.state_files("changelog")
    words.await_batches(wait_until)
    assert words.state_files("zip") > snapshots
    assert words.state_files("changelog") <= changelogs
    rows = ledger.recorded_rows(tmp_path / "ledger", words.checkpoint)
    assert rows > 0
    assert ledger.check(tmp_path / "ledger", PROFILE, rows) == []


def test_asynchronous_progress_leaves_no_gap_so_that_it_can_be_switched_off_again(
    started: Callable[[Build], Words], wait_until: WaitUntil
) -> None:
    words = started(lambda spark: rate(spark).writeStream.format("noop"))
    words.await_batches(wait_until)
    assert ASYNC in words.capabilities().knobs
    for value in (1, 0):
        words.switch(ASYNC, value)
        words.await_batches(wait_until, 4)
        run: Any = words.query.query
        assert run._jsq.streamingQuery().getClass().getSimpleName().startswith("Async") == bool(value)
    logged = words.numbers("offsets")
    assert logged == list(range(logged[0], logged[-1] + 1))


def test_a_query_with_state_cannot_track_progress_asynchronously_and_one_without_has_no_changelog(
    started: Callable[[Build], Words], wait_until: WaitUntil
) -> None:
    words = started(lambda spark: counts(rate(spark)).format("noop"))
    words.await_batches(wait_until, 1)
    capabilities = words.capabilities()
    assert CHANGES in capabilities.knobs
    assert ASYNC not in capabilities.knobs
    assert capabilities.notes["words: asynchronous progress tracking"] == (
        "Spark allows it only for queries without state"
    )


def test_a_sink_that_relies_on_its_log_cannot_track_progress_asynchronously(
    started: Callable[[Build], Words], tmp_path: Path
) -> None:
    words = started(lambda spark: rate(spark).writeStream.format("parquet").option("path", str(tmp_path / "out")))
    refusal = "only the sinks kafka, noop and console support it; the sink of this query is"
    assert async_refusal(words.query.query) == f"{refusal} FileStreamSink"
    assert async_refusal(None) == f"{refusal} unknown"


def test_what_the_application_switches_on_itself_is_no_knob(started: Callable[[Build], Words]) -> None:
    words = started(lambda spark: rate(spark).writeStream.format("noop").option(ASYNC_OPTION, "true"))
    assert ASYNC not in words.query.values
    assert words.capabilities().notes["words: asynchronous progress tracking"] == "the application sets it itself"
