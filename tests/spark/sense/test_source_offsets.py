"""What is read from offsets of sources. There is no Kafka here: its progress has the shape that Spark documents."""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import ROWS_PER_TRIGGER, Knob
from homeostat.core.objective import Objective
from homeostat.lab import source
from homeostat.lab.load_profile import Profile
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.spark.application import Application
from homeostat.spark.sense.progress import Arrivals, arrivals, flows, read_progress
from homeostat.spark.sense.source_offsets import sources_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KAFKA = "KafkaV2[Subscribe[orders, refunds]]"
RAMP = "RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=60, numPartitions=1"
FILES = "FileStreamSource[file:/in]"


def progress(description: str, end: Any, latest: Any, *, at: str = "10:00:10", **more: Any) -> Any:
    offsets = {"description": description, "startOffset": None, "endOffset": end, "latestOffset": latest}
    return read_progress(
        {
            "id": "ce011fdc-8762-4dcb-84eb-a77333e28109",
            "runId": "88e2ff94-ede0-45a8-b687-6316fbef529a",
            "timestamp": f"2026-11-15T{at}.000Z",
            "batchId": 7,
            "durationMs": {"triggerExecution": 4000},
            "sources": [{**offsets, "numInputRows": 300, **more}],
        }
    )


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
    (flow,) = flows(read, query="q", trigger_s=10.0, names=["scan"], now=arrivals(read), before=before)
    assert flow.pending_rows == behind == float(metrics["avgOffsetsBehindLatest"]) * len(gaps)
    assert flow.arrival_per_s == 5.0


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
    (flow,) = flows(read, query="q", trigger_s=10.0, names=["scan"], now=arrivals(read), before=before)
    assert math.isnan(flow.pending_rows)
    assert math.isnan(flow.arrival_per_s)
    assert flow.rows == 300


def test_a_bound_on_one_source_is_none_on_a_query_that_reads_files_too(spark: SparkSession, tmp_path: Path) -> None:
    (tmp_path / "in").mkdir()
    source.register(spark)
    profile = Profile(WorkloadSpec("constant", rate_per_s=100.0), keys=5)
    reader = spark.readStream.format("Homeostat").option("profile", profile.to_json()).option("rowsPerTrigger", "700")
    files = spark.readStream.schema("word string").option("maxFilesPerTrigger", 2).json(str(tmp_path / "in"))
    query = reader.load().select("word").union(files).writeStream.format("noop").queryName("both").start()
    try:
        bounded, unbounded = sources_of(query)
        assert (bounded.format, bounded.option("rowspertrigger")) == ("homeostat", "700")
        assert (unbounded.format, unbounded.option("maxfilespertrigger")) == ("json", "2")
        application = Application.around(spark, [query], Objective(), tmp_path / "kept")
        assert Knob(ROWS_PER_TRIGGER, "both") not in application.queries["both"].values
    finally:
        query.stop()
