"""A real stateful query that is changed, broken and brought back, with every row counted once."""

from __future__ import annotations

import json
import shutil
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import (
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    TRIGGER_S,
    Knob,
    Value,
)
from homeostat.core.errors import ConfigError
from homeostat.lab import ledger, source
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.act import query_launcher
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.query_errors import QueryError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
LIMIT_S = 180.0
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=200.0), keys=50)
STATE, SOURCE = Knob(STATE_PARTITIONS, "words"), Knob(SOURCE_PARTITIONS, "words")
ROWS, TRIGGER = Knob(ROWS_PER_TRIGGER, "words"), Knob(TRIGGER_S, "words")
CANNOT_BE_BUILT, CANNOT_RUN, CANNOT_START = 13, 14, 15


def limit() -> Deadline:
    return Deadline.after(LIMIT_S)


class Words:
    """A count of words in a directory of its own, that some values of its knobs break."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        source.register(spark)
        self.spark, self.ledger, self.control = spark, directory / "ledger", directory / "control.json"
        self.checkpoint = directory / "checkpoint"
        self.hung, self.hangs = directory / "hung", False
        self.breaks_at = -1
        values = {STATE: 3, SOURCE: 2, ROWS: 600, TRIGGER: 0.5}
        self.query = ManagedQuery(spark, "words", self.build, self.checkpoint, values)

    def lines(self, values: Mapping[Knob, Value]) -> DataFrame:
        reader = self.spark.readStream.format("homeostat").option("profile", PROFILE.to_json())
        reader = reader.option("partitions", str(values[SOURCE])).option("rowsPerTrigger", str(values[ROWS]))
        return reader.option("control", str(self.control)).load()

    def build(self, values: Mapping[Knob, Value]) -> Any:
        if values[SOURCE] == CANNOT_BE_BUILT:
            raise ValueError("there is no such partition")
        write, broken = ledger.write_counts(self.ledger), values[SOURCE] == CANNOT_RUN

        def sink(frame: DataFrame, batch: int) -> None:
            while self.hung.exists():
                self.hangs = True
                time.sleep(0.1)
            if broken or batch == self.breaks_at:
                self.breaks_at = -1
                raise ValueError("the sink is broken")
            write(frame, batch)

        writer = self.lines(values).groupBy("word").count().writeStream.outputMode("update").foreachBatch(sink)
        return writer.format("no such sink") if values[SOURCE] == CANNOT_START else writer

    def differences(self) -> list[str]:
        rows = ledger.recorded_rows(self.ledger, self.checkpoint)
        assert rows > 0
        return ledger.check(self.ledger, PROFILE, rows)

    def partitions_seen(self) -> int:
        progress: Any = self.query.query.lastProgress if self.query.query else None
        return int(progress["stateOperators"][0]["numShufflePartitions"]) if progress else 0


@pytest.fixture(scope="module")
def words(spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Words]:
    counting = Words(spark, tmp_path_factory.mktemp("words"))
    counting.query.start(limit())
    yield counting
    counting.query.stop()


def test_a_new_query_has_the_partitions_it_was_given(words: Words, wait_until: WaitUntil) -> None:
    wait_until(lambda: words.query.batches() >= 1, "two batches are done")
    assert words.partitions_seen() == 3 == words.query.checkpoint.state_partitions()
    assert words.query.stateful
    assert not words.differences()


def test_all_values_change_in_one_restart(words: Words, wait_until: WaitUntil) -> None:
    before = words.query.query
    words.query.restart({STATE: 4, SOURCE: 3}, limit())
    assert words.query.query is not before
    assert (words.query.values[STATE], words.query.values[SOURCE]) == (4, 3)
    wait_until(lambda: words.partitions_seen() == 4, "a batch with four partitions is done")
    assert not words.differences()


def test_what_cannot_be_built_is_never_stopped_for(words: Words) -> None:
    before, values = words.query.query, words.query.values
    with pytest.raises(QueryError, match="words: cannot build the query with these values: there is no such partition"):
        words.query.restart({SOURCE: CANNOT_BE_BUILT}, limit())
    assert words.query.query is before
    assert words.query.active
    assert words.query.values == values


def test_what_does_not_come_up_is_taken_back(words: Words, wait_until: WaitUntil) -> None:
    values = words.query.values
    with pytest.raises(QueryError, match=r"the sink is broken.*; the query runs with its old values again"):
        words.query.restart({STATE: 2, SOURCE: CANNOT_RUN}, limit())
    assert words.query.values == values
    assert words.query.active
    wait_until(lambda: words.partitions_seen() == values[STATE], "a batch with the old partitions is done")
    assert not words.differences()


def test_what_never_starts_leaves_the_state_as_it_was(words: Words) -> None:
    values, never = words.query.values, 7
    with pytest.raises(QueryError, match=r"no such sink.*; the query runs with its old values again"):
        words.query.restart({STATE: never, SOURCE: CANNOT_START}, limit())
    assert words.query.values == values
    at = words.query.checkpoint
    assert never not in {
        at.state_partitions(batch) for batch in at.begun_batches()
    }  # put back, not repartitioned again
    assert not words.differences()


def test_a_failed_query_starts_again(words: Words, wait_until: WaitUntil) -> None:
    failed = words.query.query
    words.breaks_at = words.query.batches() + 3
    reports = []

    def back() -> bool:
        reports.append(words.query.tend())
        return words.query.query is not failed and words.query.batches() >= 0

    wait_until(back, "the query is back")
    failures = [report for report in reports if report]
    assert len(failures) == 1
    assert failures[0].startswith("the query failed and restarts in 1 s: ")
    assert "the sink is broken" in failures[0]
    assert not words.differences()


def test_a_query_that_does_not_stop_is_back_as_soon_as_it_does(
    words: Words, wait_until: WaitUntil, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(query_launcher, "STOP_S", 2.0)
    values, before = words.query.values, words.query.query
    words.hung.touch()
    wait_until(lambda: words.hangs, "a batch hangs in the sink")
    with pytest.raises(
        QueryError, match=r"words: the query did not stop: .*; with its old values the query failed and restarts in"
    ):
        words.query.restart({SOURCE: 2}, limit())
    words.hung.unlink()

    def back() -> bool:
        words.query.tend()
        return words.query.active and words.query.query is not before and words.query.batches() >= 0

    wait_until(back, "the query is back")
    assert words.query.values == values
    assert not words.differences()


def test_the_bound_changes_without_a_restart(words: Words, wait_until: WaitUntil) -> None:
    before = words.query.query
    words.query.change_live({ROWS: 150}, limit())
    assert words.query.query is before
    assert words.query.values[ROWS] == 150
    wait_until(lambda: 0 < (words.query.query.lastProgress["numInputRows"]) <= 150, "a small batch is done")  # type: ignore[union-attr,index]


def test_an_interrupted_repartitioning_is_finished_first(words: Words, wait_until: WaitUntil) -> None:
    words.query.stop()
    words.query.finish_open_batch(limit())
    offsets = words.checkpoint / "offsets"
    last = words.query.checkpoint.batches().begun
    version, metadata, *rest = (offsets / str(last)).read_text().splitlines()
    values = json.loads(metadata)
    values["conf"]["spark.sql.shuffle.partitions"] = "5"
    (offsets / str(last + 1)).write_text("\n".join((version, json.dumps(values), *rest)))
    assert words.query.checkpoint.open_repartition() == 5
    words.query.start(limit())
    assert words.query.values[STATE] == 5
    wait_until(lambda: words.partitions_seen() == 5, "a batch with five partitions is done")
    assert not words.differences()


def test_a_checkpoint_of_another_query_is_one_clear_line(words: Words, tmp_path: Path) -> None:
    words.query.stop()
    shutil.copytree(words.checkpoint, tmp_path / "checkpoint")

    def distinct(values: Mapping[Knob, Value]) -> Any:
        frame = words.lines(values).dropDuplicates(["word"])
        return frame.writeStream.outputMode("append").format("noop")

    other = ManagedQuery(words.spark, "other", distinct, tmp_path / "checkpoint", words.query.values)
    with pytest.raises(ConfigError, match=r"query other: the checkpoint .* belongs to another query") as raised:
        other.start(limit())
    assert "\n" not in raised.value.line
    assert not other.active


def test_a_query_that_was_handed_over_is_not_restarted(words: Words) -> None:
    words.query.start(limit())
    running = words.query.query
    assert running is not None
    handed_over = ManagedQuery.attach(words.spark, running)
    assert handed_over.name == "words"
    assert not handed_over.restartable
    with pytest.raises(QueryError, match="attached queries cannot be restarted"):
        handed_over.restart({STATE: 2}, limit())
    assert running.isActive
