"""What sources of other kinds are told, and what is read from what they tell. There is no Kafka here: its progress is
written after the shape that Spark documents."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import ROWS_PER_TRIGGER, Knob
from homeostat.core.events import Event, Observed, UnderWay
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN
from homeostat.lab import source
from homeostat.lab.faults import hang_while
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.application import Application
from homeostat.spark.pipeline import knob_options
from homeostat.spark.sense.progress import Arrivals, arrivals, arrived_rows, flows, idle_flows, read_progress
from homeostat.spark.sense.query_handle import handle_of
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.sensors import Sensors
from homeostat.spark.sense.source_offsets import SourceOptions, latest_row, sources_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Wait = Callable[[Callable[[], bool], str], None]
RATE_PER_S = 40
KAFKA = "KafkaV2[Subscribe[orders, refunds]]"
RATE = "RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=0, numPartitions=1"
RAMP = "RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=60, numPartitions=1"
FILES = "FileStreamSource[file:/in]"


def progress(description: str, end: Any, latest: Any, *, at: str = "10:00:10", **more: Any) -> Any:
    told = {"description": description, "startOffset": None, "endOffset": end, "latestOffset": latest}
    return read_progress(
        {
            "id": "ce011fdc-8762-4dcb-84eb-a77333e28109",
            "runId": "88e2ff94-ede0-45a8-b687-6316fbef529a",
            "timestamp": f"2026-11-15T{at}.000Z",
            "batchId": 7,
            "durationMs": {"triggerExecution": 4000},
            "sources": [{**told, "numInputRows": 300, **more}],
        }
    )


@pytest.mark.parametrize(
    ("format", "options"),
    [
        ("homeostat", {"rowsPerTrigger": "500", "partitions": "6"}),
        ("kafka", {"maxOffsetsPerTrigger": "500", "minPartitions": "6"}),
        ("rate", {"numPartitions": "6"}),
        ("rate-micro-batch", {"numPartitions": "6"}),
        ("json", {}),
        ("parquet", {}),
        ("delta", {}),
        ("socket", {}),
    ],
)
def test_knobs_are_told_where_they_mean_the_same(format: str, options: dict[str, str]) -> None:
    """A bound on files or bytes is none on rows, and a generator's rows are the load."""
    assert knob_options(format, 500, 6.0) == options
    assert knob_options(format, None, None) == {}


@pytest.mark.parametrize(
    ("end", "latest", "behind"),
    [
        ({"orders": {"0": 250, "1": 250}}, {"orders": {"0": 400, "1": 260}}, 160),
        ({"orders": {"0": 5}, "refunds": {"0": 7, "1": 0}}, {"orders": {"0": 5}, "refunds": {"0": 9, "1": 4}}, 6),
        ({"offset": {"0": 5}}, {"offset": {"0": 9}}, 4),  # a topic may be called so
        ({"row": {"0": 5}, "offset": {"3": 1}}, {"row": {"0": 5}, "offset": {"3": 2}}, 1),
        ({"orders": {}}, {"orders": {}}, 0),
    ],
)
def test_what_waits_in_kafka_is_what_its_own_metrics_tell(end: Any, latest: Any, behind: int) -> None:
    gaps = [latest[topic][part] - taken for topic, parts in end.items() for part, taken in parts.items()]
    metrics = {
        "minOffsetsBehindLatest": str(min(gaps, default=0)),
        "maxOffsetsBehindLatest": str(max(gaps, default=0)),
        "avgOffsetsBehindLatest": str(sum(gaps) / max(1, len(gaps))),
    }
    read = progress(KAFKA, end, latest, metrics=metrics)
    before = Arrivals(read.started_s - 20, (arrivals(read).rows[0] - 100,))
    (seen,) = flows(read, query="q", trigger_s=10.0, names=["scan"], now=arrivals(read), before=before)
    assert seen.pending_rows == behind == float(metrics["avgOffsetsBehindLatest"]) * len(gaps)
    assert seen.arrival_per_s == 5.0


@pytest.mark.parametrize(
    ("description", "end", "latest"),
    [
        (KAFKA, {"orders": {"0": 5}}, None),
        (FILES, {"logOffset": 3}, {"logOffset": 9}),
        ("DeltaSource[file:/t]", {"reservoirVersion": 3, "index": 1}, {"reservoirVersion": 4, "index": -1}),
        ("org.apache.iceberg.SparkMicroBatchStream@7", {"version": 1, "snapshot_id": 5}, {"version": 1}),
        ("CloudFilesSource[s3://in]", {"seqNum": 3, "sourceVersion": 1}, None),
        (RAMP, 3, 9),
    ],
)
def test_what_waits_in_files_and_tables_is_unknown_and_never_none(description: str, end: Any, latest: Any) -> None:
    read = progress(description, end, latest)
    before = Arrivals(read.started_s - 20, (0.0,))
    (seen,) = flows(read, query="q", trigger_s=10.0, names=["scan"], now=arrivals(read), before=before)
    assert math.isnan(seen.pending_rows)
    assert math.isnan(seen.arrival_per_s)
    assert seen.rows == 300


@pytest.mark.parametrize(
    ("format", "options", "description", "offset", "rows"),
    [
        ("rate", {"rowsPerSecond": "7"}, RATE, 3, 21 + 7 * 4),
        ("rate", {"rowspersecond": "7"}, RATE, 3, 21 + 7 * 4),
        ("rate", {}, "RateStreamV2[rowsPerSecond=1, rampUpTimeSeconds=0, numPartitions=1", 3, 3 + 4),
        ("rate", {"rowsPerSecond": "7", "rampUpTime": "60s"}, RAMP, 3, NAN),
        ("rate-micro-batch", {"rowsPerBatch": "7"}, "RatePerMicroBatch", {"offset": 30, "timestamp": 5}, NAN),
        ("kafka", {}, KAFKA, {"orders": {"0": 5}}, NAN),
        ("json", {}, FILES, {"logOffset": 3}, NAN),
    ],
)
def test_what_arrives_during_a_batch_is_known_of_sources_that_follow_the_clock(
    format: str, options: dict[str, str], description: str, offset: Any, rows: float
) -> None:
    read = progress(description, offset, offset)
    told = SourceOptions(format, options)
    assert arrived_rows([told], read, read.ended_s) == pytest.approx((rows,), nan_ok=True)
    assert math.isnan(latest_row(told, offset, read.ended_s))
    assert arrived_rows([], read, read.ended_s) == pytest.approx((NAN,), nan_ok=True)


def test_rows_that_are_held_back_are_not_taken_for_none() -> None:
    assert SourceOptions("kafka", {"minoffsetspertrigger": "1000"}).holds_back
    assert not SourceOptions("kafka", {"maxOffsetsPerTrigger": "1000"}).holds_back
    (seen,) = idle_flows("q", ["scan"], 5.0, NAN)
    assert (seen.rows, seen.seconds) == (0.0, 0.0)
    assert math.isnan(seen.pending_rows)
    assert math.isnan(seen.arrival_per_s)


def test_a_bound_on_one_source_is_none_on_a_query_that_reads_files_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source.register(spark)
    profile = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=5)
    reader = spark.readStream.format("Homeostat").option("profile", profile.to_json()).option("rowsPerTrigger", "700")
    files = spark.readStream.schema("word string").option("maxFilesPerTrigger", 2).json(str(tmp_path / "in"))
    query = reader.load().select("word").union(files).writeStream.format("noop").queryName("both").start()
    try:
        bounded, unbounded = sources_of(query)
        assert (bounded.format, bounded.told("rowspertrigger")) == ("homeostat", "700")
        assert (unbounded.format, unbounded.told("maxfilespertrigger")) == ("json", "2")
        application = Application.around(spark, [query], Objective(), tmp_path / "kept")
        assert Knob(ROWS_PER_TRIGGER, "both") not in application.queries["both"].values
    finally:
        query.stop()


def test_what_arrives_at_the_rate_source_is_seen_while_a_batch_hangs(
    spark: SparkSession, tmp_path: Path, wait_until: Wait
) -> None:
    def discard(frame: DataFrame, batch: int) -> None:
        frame.write.format("noop").mode("append").save()

    hang, events = tmp_path / "hang", list[Event]()
    ticks = spark.readStream.format("rate").option("rowsPerSecond", RATE_PER_S).load().writeStream
    query = ticks.queryName("ticks").foreachBatch(hang_while(hang, discard)).trigger(processingTime="1 second").start()
    handle = handle_of(query, "ticks", 1.0)
    rest = RestClient(str(spark.sparkContext.uiWebUrl), first_timeout_s=60.0, timeout_s=60.0)
    sensors = Sensors(rest, lambda: [handle], events.append, spark=spark)

    def waiting() -> list[float]:
        done = int((query.lastProgress or {"batchId": -1})["batchId"])
        running = [event for event in list(events) if isinstance(event, UnderWay) and event.batch > done]
        return [event.pending_rows for event in running]

    try:
        sensors.start()
        wait_until(lambda: sum(isinstance(event, Observed) for event in list(events)) >= 2, "batches ended")
        hang.touch()
        wait_until(lambda: bool(waiting()) and waiting()[-1] > 3 * RATE_PER_S, "more than three seconds' rows wait")
    finally:
        hang.unlink(missing_ok=True)
        sensors.stop()
        rest.close()
        query.stop()
