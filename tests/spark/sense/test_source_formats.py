"""The adapters of source formats: their options, and what arrives at them while a batch runs."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.events import Event, Observed, UnderWay
from homeostat.core.observation import NAN
from homeostat.lab import source_registration
from homeostat.lab.faults import hang_while
from homeostat.spark.sense import source_formats
from homeostat.spark.sense.application_sensors import Sensors
from homeostat.spark.sense.progress import arrived_rows, idle_flows, read_progress
from homeostat.spark.sense.query_handle import handle_of
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.source_formats import (
    SourceFormat,
    SourceOptions,
    SourcePosition,
    format_of,
    knob_options,
    latest_row,
    register,
)

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Wait = Callable[[Callable[[], bool], str], None]
RATE_PER_S = 40
KAFKA = "KafkaV2[Subscribe[orders, refunds]]"
RATE = "RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=0, numPartitions=1"
RAMP = "RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=60, numPartitions=1"
FILES = "FileStreamSource[file:/in]"


def progress(description: str, offset: Any) -> Any:
    offsets = {"description": description, "startOffset": None, "endOffset": offset, "latestOffset": offset}
    return read_progress(
        {
            "id": "ce011fdc-8762-4dcb-84eb-a77333e28109",
            "runId": "88e2ff94-ede0-45a8-b687-6316fbef529a",
            "timestamp": "2026-11-15T10:00:10.000Z",
            "batchId": 7,
            "durationMs": {"triggerExecution": 4000},
            "sources": [{**offsets, "numInputRows": 300}],
        }
    )


@pytest.mark.parametrize(
    ("format", "options"),
    [
        (source_registration.FORMAT, {"rowsPerTrigger": "500", "partitions": "6"}),
        ("kafka", {"maxOffsetsPerTrigger": "500", "minPartitions": "6"}),
        ("rate", {"numPartitions": "6"}),
        ("rate-micro-batch", {"numPartitions": "6"}),
        ("json", {}),
        ("parquet", {}),
        ("delta", {}),
        ("socket", {}),
    ],
)
def test_knobs_are_reported_where_they_mean_the_same(format: str, options: dict[str, str]) -> None:
    """A bound on files or bytes is none on rows, and a generator's rows are the load."""
    assert knob_options(format, 500, 6.0) == options
    assert knob_options(format, None, None) == {}


def test_a_registered_format_is_found_whatever_its_case_and_others_are_unknown(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(source_formats, "_FORMATS", {})
    register("Pulsar", SourceFormat("maxEntries", arrived_rows=lambda source, position, at_s: at_s * 2))
    assert knob_options("PULSAR", 10, 3) == {"maxEntries": "10"}
    assert latest_row(SourceOptions("pulsar"), SourcePosition(None), 8.0) == 16.0
    assert format_of("kafka") == SourceFormat()
    assert math.isnan(latest_row(SourceOptions("kafka"), SourcePosition({"orders": {"0": 5}}, 5.0, 1.0), 2.0))


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
    read = progress(description, offset)
    options_of_source = SourceOptions(format, options)
    assert arrived_rows([options_of_source], read, read.ended_s) == pytest.approx((rows,), nan_ok=True)
    assert math.isnan(latest_row(options_of_source, SourcePosition(offset), read.ended_s))
    assert arrived_rows([], read, read.ended_s) == pytest.approx((NAN,), nan_ok=True)


def test_rows_that_are_held_back_are_not_taken_for_none() -> None:
    assert SourceOptions("kafka", {"minoffsetspertrigger": "1000"}).holds_back
    assert not SourceOptions("kafka", {"maxOffsetsPerTrigger": "1000"}).holds_back
    (flow,) = idle_flows("q", ["scan"], 5.0, NAN)
    assert (flow.rows, flow.seconds) == (0.0, 0.0)
    assert math.isnan(flow.pending_rows)
    assert math.isnan(flow.arrival_per_s)


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
