"""Limits and triggers of real queries that change while they run, and restarts that leave no batch open."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from threading import Event
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import (
    ROWS_PER_TRIGGER,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Knob,
    KnobSpec,
    Patch,
    Value,
)
from homeostat.core.events import Apply
from homeostat.core.objective import Objective
from homeostat.lab import ledger, source
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act.capabilities import judge, look_around
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark.act.query_launcher import QueryLauncher
from homeostat.spark.act.step_runner import StepRunner
from homeostat.spark.application import Application

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WaitUntil = Callable[[Callable[[], bool], str], None]
LIMIT_S = 180.0
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=3000.0), keys=50)
ROWS, TRIGGER, STATE = (Knob(kind, "words") for kind in (ROWS_PER_TRIGGER, TRIGGER_S, STATE_PARTITIONS))


def lines(spark: SparkSession, rows: Value) -> DataFrame:
    source.register(spark)
    reader = spark.readStream.format("homeostat").option("profile", PROFILE.to_json())
    return reader.option("rowsPerTrigger", str(rows)).load()


def batch_rows(query: StreamingQuery | None) -> int:
    progress: Any = query.lastProgress if query is not None else None
    return int(progress["numInputRows"]) if progress else 0


class Words:
    """A count of words with more rows waiting than its limit lets in, and commands to it as the loop sends them."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self.spark, self.ledger, self.checkpoint = spark, directory / "ledger", directory / "checkpoint"
        values: dict[Knob, Value] = {ROWS: 100, TRIGGER: 0.5, STATE: 2}
        self.query = ManagedQuery(spark, "words", self._build, self.checkpoint, values)
        self._runner = StepRunner(None, [self.query], None, self.capabilities, lambda ids: ids, Event())

    def _build(self, values: Mapping[Knob, Value]) -> Any:
        counts = lines(self.spark, values[ROWS]).groupBy("word").count()
        return counts.writeStream.outputMode("update").foreachBatch(ledger.write_counts(self.ledger))

    def capabilities(self) -> Capabilities:
        return judge(look_around(self.spark), [self.query]).capabilities

    def command(self, values: Mapping[Knob, Value]) -> str:
        desired = self._runner.configuration().patched(Patch(values))
        answer = self._runner.run(Apply(str(values), 0.0, desired, (), LIMIT_S), Deadline.after(LIMIT_S))
        assert answer.applied, answer.detail
        return answer.detail

    @property
    def run(self) -> str:
        assert self.query.query is not None
        return str(self.query.query.runId)


@pytest.fixture
def words(local_spark: SparkSession, tmp_path: Path) -> Iterator[Words]:
    counting = Words(local_spark, tmp_path)
    counting.query.start(Deadline.after(LIMIT_S))
    yield counting
    counting.query.stop()


def test_a_pipeline_changes_while_it_runs_and_a_restart_leaves_no_batch_open(
    words: Words, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    wait_until(lambda: batch_rows(words.query.query) == 100, "a batch is full")
    knobs, run = words.capabilities().knobs, words.run
    assert (knobs[ROWS].live, knobs[TRIGGER].live, knobs[STATE].live) == (True, True, False)

    assert "rows per trigger changed without a restart" in words.command({ROWS: 700})
    wait_until(lambda: batch_rows(words.query.query) == 700, "a larger batch is full")
    words.command({TRIGGER: 0.0, ROWS: 300})
    wait_until(lambda: batch_rows(words.query.query) == 300, "a smaller batch is full")
    assert "trigger interval changed without a restart" in words.command({TRIGGER: 5.0})
    words.command({TRIGGER: 0.5})
    assert words.run == run
    assert (words.query.values[ROWS], words.query.values[TRIGGER]) == (300, 0.5)

    left_open: list[bool] = []
    stop = QueryLauncher.stop

    def stop_and_look(launcher: QueryLauncher, query: StreamingQuery | None) -> None:
        stop(launcher, query)
        left_open.append(words.query.checkpoint.batches().one_is_open)

    monkeypatch.setattr(QueryLauncher, "stop", stop_and_look)
    words.command({STATE: 3})
    assert left_open == [False]
    assert words.run != run
    wait_until(lambda: batch_rows(words.query.query) == 300, "the next run has the same limit")
    rows = ledger.recorded_rows(words.ledger, words.checkpoint)
    assert rows > 0
    assert ledger.check(words.ledger, PROFILE, rows) == []


class Attached:
    """A query that somebody else started, and commands to it."""

    def __init__(self, spark: SparkSession, frame: DataFrame, directory: Path, **bounds: tuple[Value, Value]) -> None:
        writer = frame.writeStream.format("noop").queryName("words").trigger(processingTime="500 milliseconds")
        self.query = writer.option("checkpointLocation", str(directory / "checkpoint")).start()
        while not self.query.recentProgress:
            assert not self.query.awaitTermination(1)
        self.run = self.query.runId
        self.application = Application.around(spark, [self.query], Objective(), directory / "kept", bounds=bounds)

    def change(self, values: Mapping[Knob, Value]) -> str:
        return self.application.queries["words"].change_live(values, Deadline.after(LIMIT_S))

    def specs(self) -> Mapping[Knob, KnobSpec]:
        return self.application.describe("words").capabilities.knobs

    def note(self, what: str) -> str:
        return self.application.describe("words").capabilities.notes.get(f"words: {what}", "")

    @property
    def values(self) -> Mapping[Knob, Value]:
        return self.application.queries["words"].values


@pytest.fixture
def attached(local_spark: SparkSession, tmp_path: Path) -> Iterator[Callable[..., Attached]]:
    queries: list[Attached] = []

    def attach(frame: DataFrame, **bounds: tuple[Value, Value]) -> Attached:
        queries.append(Attached(local_spark, frame, tmp_path, **bounds))
        return queries[-1]

    yield attach
    for each in queries:
        still_runs, run = each.query.isActive, each.query.runId
        each.query.stop()
        assert (still_runs, run) == (True, each.run)


def files(spark: SparkSession, directory: Path, at_most: int, count: int = 300) -> DataFrame:
    """Of ten rows each."""
    directory.mkdir()
    for number in range(count):
        (directory / f"{number}.txt").write_text("word\n" * 10)
    return spark.readStream.format("text").option("maxFilesPerTrigger", at_most).load(str(directory))


def rows_by_source(words: Attached) -> list[int]:
    progress: Any = words.query.lastProgress
    return [int(each["numInputRows"]) for each in progress["sources"]]


def test_a_source_that_counts_rows_changes_and_the_files_beside_it_do_not(
    local_spark: SparkSession, attached: Callable[..., Attached], tmp_path: Path, wait_until: WaitUntil
) -> None:
    both = lines(local_spark, 100).select("word").union(files(local_spark, tmp_path / "in", 1))
    words = attached(both, rows_per_trigger=(50, 1000), trigger_s=(0.5, 60))
    assert (words.values[ROWS], words.values[TRIGGER]) == (100, 0.5)
    assert words.specs()[ROWS] == KnobSpec(50, 1000, live=True)
    assert words.specs()[TRIGGER] == KnobSpec(0.5, 60, live=True)
    assert "rows per trigger changed" in words.change({ROWS: 200})
    wait_until(lambda: rows_by_source(words) == [200, 10], "its batches are larger")
    assert "rows per trigger changed" in words.change({ROWS: 100})
    wait_until(lambda: rows_by_source(words) == [100, 10], "its batches are as they were")

    unbounded = Application.around(local_spark, [words.query], Objective(), tmp_path / "unbounded").describe("words")
    assert not {ROWS, TRIGGER} & set(unbounded.capabilities.knobs)


def test_files_are_limited_by_what_a_batch_of_them_has_shown(
    local_spark: SparkSession, attached: Callable[..., Attached], tmp_path: Path, wait_until: WaitUntil
) -> None:
    both = files(local_spark, tmp_path / "left", 1).union(files(local_spark, tmp_path / "right", 2))
    words = attached(both, rows_per_trigger=(1, 1000))
    assert words.values[ROWS] == 30
    assert "rows per trigger" in words.change({ROWS: 90})
    wait_until(lambda: rows_by_source(words) == [30, 60], "each source has three times its files")
    words.change({ROWS: 30})
    wait_until(lambda: rows_by_source(words) == [10, 20], "each source has its files again")


@pytest.mark.parametrize("format", ["rate", "rate-micro-batch"])
def test_what_has_no_limit_has_a_reason_and_its_trigger_changes(
    local_spark: SparkSession, attached: Callable[..., Attached], format: str
) -> None:
    option = "rowsPerSecond" if format == "rate" else "rowsPerBatch"
    frame = local_spark.readStream.format(format).option(option, 50).load()
    words = attached(frame, rows_per_trigger=(1, 1000), trigger_s=(0, 60))
    assert words.note("rows per trigger").startswith("no source has a limit that can be changed: Rate")
    with pytest.raises(QueryError, match="words: rows per trigger cannot change without a restart: no source has"):
        words.change({ROWS: 10})
    assert "trigger interval changed without a restart" in words.change({TRIGGER: 3.0})
    assert "trigger interval changed without a restart" in words.change({TRIGGER: 0.0})
    assert "trigger interval changed without a restart" in words.change({TRIGGER: 1.0})
    assert words.values[TRIGGER] == 1.0
