"""The reader of the experiment source alone, then the source on a real cluster."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.lab import ledger, source
from homeostat.lab.load_profile import Profile
from homeostat.lab.source_control import (
    latest_row,
    write_control,
)
from homeostat.sim.scenario.spec import WorkloadSpec

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

STEADY = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=50)
# 3,000 rows, long ago: what has arrived does not depend on when the test runs.
FINISHED = Profile(WorkloadSpec("steps", steps=((0.0, 1000.0), (3.0, 0.0))), keys=50)
LONG_AGO_S = 1_000_000_000.0


@pytest.fixture
def control(tmp_path: Path) -> Path:
    return tmp_path / "control.json"


def reader(control: Path | str = "", profile: Profile = STEADY, **options: str) -> source.StreamReader:
    return source.StreamReader({"profile": profile.to_json(), "control": str(control), **options})


def bounded(stream: source.StreamReader, start: dict[str, Any]) -> dict[str, Any]:
    return stream.latestOffset(start, stream.getDefaultReadLimit())


def test_the_first_start_is_kept_until_there_is_a_row() -> None:
    stream = reader()
    assert stream.initialOffset() is stream.initialOffset()
    assert reader(start="12.5").initialOffset() == {"row": 0, "started_s": 12.5}


def test_a_batch_has_the_limit_that_spark_passes_or_a_smaller_one_from_the_control_file(control: Path) -> None:
    from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadMaxRows

    stream = reader(control, FINISHED, rowsPerTrigger="400")
    start = {"row": 0, "started_s": LONG_AGO_S}
    assert bounded(stream, start)["row"] == 400
    assert [stream.latestOffset(start, ReadMaxRows(rows))["row"] for rows in (900, 0)] == [900, 0]
    write_control(control, rows_per_trigger=300)
    assert bounded(stream, start)["row"] == 300
    write_control(control, rows_per_trigger=0)
    assert bounded(stream, start)["row"] == 400
    write_control(control, rows_per_trigger=1)
    assert stream.latestOffset(start, ReadAllAvailable())["row"] == 3000


def test_all_rows_that_wait_are_reported(control: Path) -> None:
    stream = reader(control, FINISHED, rowsPerTrigger="400")
    assert stream.reportLatestOffset() is None
    bounded(stream, {"row": 0, "started_s": LONG_AGO_S})
    assert stream.reportLatestOffset() == {"row": 3000, "started_s": LONG_AGO_S}
    options = {"profile": FINISHED.to_json(), "CONTROL": str(control)}
    assert latest_row(options, time.time(), LONG_AGO_S) == 3000
    assert latest_row(options, LONG_AGO_S + 1, LONG_AGO_S) == 1000


def test_a_load_that_rewrites_the_past_takes_no_row_back(control: Path) -> None:
    stream = reader(control, FINISHED, rowsPerTrigger="400")
    start = {"row": 2900, "started_s": LONG_AGO_S}
    assert bounded(stream, start)["row"] == 3000
    write_control(control, load=[(0, 0.1)])
    assert bounded(stream, start)["row"] == 3000
    assert bounded(reader(control, FINISHED), start)["row"] == 2900


def test_a_clock_set_back_takes_no_row_back() -> None:
    start = {"row": 70, "started_s": time.time() + 3600}
    assert bounded(reader(), start) == start


def test_available_now_ends_with_what_was_there(monkeypatch: pytest.MonkeyPatch) -> None:
    stream = reader()
    start = {"row": 0, "started_s": time.time() - 10}
    stream.prepareForTriggerAvailableNow()
    there = bounded(stream, start)["row"]
    later = time.time() + 100
    monkeypatch.setattr(time, "time", lambda: later)
    assert bounded(stream, start)["row"] == there


@pytest.mark.parametrize(("rows", "sizes"), [(0, []), (2, [1, 1]), (10, [3, 3, 4])])
def test_partitions_cut_a_batch_evenly(rows: int, sizes: list[int]) -> None:
    offsets = [{"row": row, "started_s": LONG_AGO_S} for row in (100, 100 + rows)]
    parts = reader(profile=FINISHED, partitions="3").partitions(offsets[0], offsets[1])
    assert [part.stop - part.start for part in parts] == sizes


@pytest.mark.parametrize(
    ("partitions", "share", "sizes"),
    [(3, "0.7", [70, 15, 15]), (3, "1", [100]), (2, "0.5", [50, 50]), (1, "0.7", [100]), (3, "0", [33, 33, 34])],
)
def test_the_first_partition_may_hold_more_than_the_others(partitions: int, share: str, sizes: list[int]) -> None:
    stream = reader(profile=FINISHED, partitions=str(partitions), firstShare=share)
    parts = stream.partitions({"row": 0, "started_s": LONG_AGO_S}, {"row": 100, "started_s": LONG_AGO_S})
    assert [part.stop - part.start for part in parts] == sizes
    assert (parts[0].start, parts[-1].stop) == (0, 100)
    assert all(before.stop == after.start for before, after in pairwise(parts))


def test_the_control_file_evens_out_the_partitions(control: Path) -> None:
    stream = reader(profile=FINISHED, partitions="2", firstShare="0.9", control=control)
    write_control(control, first_share=0)
    parts = stream.partitions({"row": 0, "started_s": LONG_AGO_S}, {"row": 100, "started_s": LONG_AGO_S})
    assert [part.stop - part.start for part in parts] == [50, 50]


def test_rows_hold_their_number_word_and_arrival() -> None:
    stream = reader(profile=FINISHED, partitions="2")
    parts = stream.partitions({"row": 0, "started_s": 1.0}, {"row": 2000, "started_s": LONG_AGO_S})
    table = [row for part in parts for batch in stream.read(part) for row in batch.to_pylist()]
    assert [row["row"] for row in table] == list(range(2000))
    assert [row["word"] for row in table] == FINISHED.words(0, 2000).tolist()
    for row in table[::100]:
        assert row["arrived"].timestamp() == pytest.approx(LONG_AGO_S + row["row"] / 1000, abs=0.01)


# On a real cluster


@pytest.fixture
def stream(spark: SparkSession) -> Iterator[Callable[..., DataFrame]]:
    source.register(spark)
    spark.conf.set("spark.sql.shuffle.partitions", "2")

    def load(profile: Profile, **options: object) -> DataFrame:
        described = spark.readStream.format(source.FORMAT).option("profile", profile.to_json())
        for name, value in options.items():
            described = described.option(name, str(value))
        return described.load()

    yield load
    spark.conf.unset("spark.sql.shuffle.partitions")


def progress(query: StreamingQuery) -> list[dict[str, Any]]:
    return [json.loads(one.json) for one in query.recentProgress]


def test_bound_and_load_change_while_the_query_runs(stream: Callable[..., DataFrame], workspace: Path) -> None:
    control, rows = workspace / "control.json", workspace / "rows"
    write_control(control, rows_per_trigger=500)
    keep = ledger.write_rows(rows)

    def sink(batch: DataFrame, batch_id: int) -> None:
        keep(batch, batch_id)
        if batch_id == 1:
            write_control(control, rows_per_trigger=1000)

    query = (
        stream(FINISHED, partitions=3, control=control, start=LONG_AGO_S)
        .writeStream.foreachBatch(sink)
        .option("checkpointLocation", str(workspace / "checkpoint"))
        .start()
    )
    try:
        query.processAllAvailable()
        write_control(control, load=[(0, 2)])
        query.processAllAvailable()
    finally:
        query.stop()
    reports = [one for one in progress(query) if one["numInputRows"]]
    assert [one["numInputRows"] for one in reports] == [500, 500, 1000, 1000, 1000, 1000, 1000]
    sources = [one["sources"][0] for one in reports]
    pending = [one["latestOffset"]["row"] - one["endOffset"]["row"] for one in sources]
    assert pending == [2500, 2000, 1000, 0, 2000, 1000, 0]
    assert ledger.committed_rows(workspace / "checkpoint") == 6000
    assert ledger.check_rows(rows, FINISHED, 6000) == []


def test_a_batch_that_is_redone_holds_the_same_rows(stream: Callable[..., DataFrame], workspace: Path) -> None:
    counts, checkpoint, broken = workspace / "counts", workspace / "checkpoint", workspace / "broken"
    keep = ledger.write_counts(counts)

    def failing_once(batch: DataFrame, batch_id: int) -> None:
        keep(batch, batch_id)
        if batch_id == 2 and not broken.exists():
            broken.write_bytes((counts / "2.parquet").read_bytes())
            raise RuntimeError("written, but not committed")

    def start(partitions: int) -> StreamingQuery:
        return (
            stream(STEADY, partitions=partitions, rowsPerTrigger=150, start=time.time() - 60)
            .groupBy("word")
            .count()
            .writeStream.outputMode("update")
            .foreachBatch(failing_once)
            .option("checkpointLocation", str(checkpoint))
            .start()
        )

    from pyspark.errors import StreamingQueryException

    with pytest.raises(StreamingQueryException, match="written, but not committed"):
        start(partitions=2).awaitTermination()
    assert ledger.committed_rows(checkpoint) == 300
    query = start(partitions=3)
    while not any(one["batchId"] >= 4 for one in progress(query)):
        assert not query.awaitTermination(1), "the query ended"
    query.stop()
    assert sorted(_table(counts / "2.parquet")) == sorted(_table(broken))
    recorded = ledger.recorded_rows(counts, checkpoint)
    assert recorded >= ledger.committed_rows(checkpoint) >= 750
    assert ledger.check(counts, STEADY, recorded) == []


def test_available_now_takes_what_waits_in_bounded_batches(stream: Callable[..., DataFrame], workspace: Path) -> None:
    query = (
        stream(FINISHED, partitions=2, rowsPerTrigger=2000, start=LONG_AGO_S)
        .writeStream.foreachBatch(ledger.write_rows(workspace / "rows"))
        .option("checkpointLocation", str(workspace / "checkpoint"))
        .trigger(availableNow=True)
        .start()
    )
    query.awaitTermination()
    assert [one["numInputRows"] for one in progress(query)] == [2000, 1000]
    assert ledger.check_rows(workspace / "rows", FINISHED, 3000) == []


def _table(path: Path) -> list[tuple[str, int]]:
    from pyarrow import parquet

    return [(row["word"], row["count"]) for row in parquet.ParquetFile(path).read().to_pylist()]
