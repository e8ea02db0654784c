"""Progress as Spark reports it, recorded from 4.3 and written after the shapes of 3.5."""

from __future__ import annotations

import json
import math
from copy import deepcopy
from typing import Any

import pytest

from homeostat.core.observation import NAN, FlowSample, KeyLoad
from homeostat.spark.sense.progress import Arrivals, RowShare, arrivals, flows, idle_flows, read_progress, row_shares
from homeostat.spark.sense.source_formats import SourceOptions
from homeostat.spark.sense.source_offsets import row_number
from support.paths import RECORDED as LOGS

RECORDED: dict[str, Any] = json.loads((LOGS / "stages.json").read_text())
KAFKA_35: dict[str, Any] = {
    "id": "ce011fdc-8762-4dcb-84eb-a77333e28109",
    "runId": "88e2ff94-ede0-45a8-b687-6316fbef529a",
    "name": "orders",
    "timestamp": "2026-11-15T10:00:10.000Z",
    "batchId": 7,
    "batchDuration": 4000,
    "numInputRows": 300,
    "inputRowsPerSecond": 30.0,
    "processedRowsPerSecond": 75.0,
    "durationMs": {"addBatch": 3500, "latestOffset": 20, "triggerExecution": 4000, "walCommit": 30},
    "eventTime": {"watermark": "2026-11-15T10:00:00.000Z"},
    "stateOperators": [
        {"operatorName": "stateStoreSave", "numRowsTotal": 40, "numRowsUpdated": 9, "memoryUsedBytes": 512}
    ],
    "sources": [
        {
            "description": "KafkaV2[Subscribe[orders]]",
            "startOffset": {"orders": {"0": 100, "1": 100}},
            "endOffset": {"orders": {"0": 250, "1": 250}},
            "latestOffset": {"orders": {"0": 400, "1": 260}},
            "numInputRows": 300,
            "inputRowsPerSecond": 30.0,
            "processedRowsPerSecond": 75.0,
            "metrics": {"avgOffsetsBehindLatest": "80.0"},
        }
    ],
    "sink": {"description": "ForeachBatchSink", "numOutputRows": -1},
}


def flow(progress: dict[str, Any], before: Arrivals | None = None) -> FlowSample:
    read = read_progress(progress)
    (sample,) = flows(read, query="q", trigger_s=10.0, names=["scan"], now=arrivals(read), before=before)
    return sample


def changed(**values: Any) -> dict[str, Any]:
    progress = deepcopy(KAFKA_35)
    progress["sources"][0].update(values)
    return progress


def test_kafka_counts_rows_behind_over_all_partitions() -> None:
    sample = flow(KAFKA_35)
    assert (sample.rows, sample.seconds, sample.trigger_s, sample.pending_rows) == (300, 4.0, 10.0, 160)
    assert (sample.updated_keys, sample.state_rows, sample.state_bytes, sample.watermark_gap_s) == (9, 40, 512, 10.0)
    assert sample.phases_s == {"addBatch": 3.5, "latestOffset": 0.02, "walCommit": 0.03}


def test_where_offsets_are_not_all_rows_the_backlog_is_an_estimate_below_a_bound() -> None:
    read = read_progress(KAFKA_35)
    gaps = {0: 0.5}
    (sample,) = flows(
        read, query="q", trigger_s=10.0, names=["scan"], now=arrivals(read), before=None, rows_per_offset=gaps
    )
    assert (sample.pending_rows, sample.pending_at_most) == (80.0, 160.0)
    assert math.isnan(flow(KAFKA_35).pending_at_most)


def test_rows_per_offset_are_those_of_all_offsets_that_were_read_lately() -> None:
    sources = (SourceOptions("kafka"),)
    half = row_shares(sources, read_progress(changed(numInputRows=150)))
    none = row_shares(sources, read_progress(changed(numInputRows=0)))
    mark = row_shares(
        sources,
        read_progress(changed(numInputRows=0, endOffset={"orders": {"0": 101, "1": 100}})),
    )
    assert (half, none, mark) == ({0: RowShare(150.0, 300.0)}, {0: RowShare(0.0, 300.0)}, {0: RowShare(0.0, 1.0)})
    # The end of a transaction hardly counts; nothing but aborted rows does, and in the end nothing else.
    assert half[0].after(mark[0]).rows_per_offset == pytest.approx(0.5, abs=0.01)
    assert half[0].after(none[0]).rows_per_offset == pytest.approx(0.7 * 150 / (0.7 * 300 + 300))
    share = half[0]
    for _ in range(20):
        share = share.after(none[0])
    assert share.rows_per_offset < 0.001
    assert row_shares(sources, read_progress(changed(startOffset=None))) == {}
    assert row_shares((SourceOptions("rate"),), read_progress(KAFKA_35)) == {}


def test_arrival_is_what_the_latest_offset_grew_by_not_what_was_taken() -> None:
    now_s = read_progress(KAFKA_35).started_s
    assert flow(KAFKA_35, Arrivals(now_s - 10, (460.0,))).arrival_per_s == 20.0
    assert math.isnan(flow(KAFKA_35).arrival_per_s)


def test_offsets_that_go_back_say_nothing_about_arrival() -> None:
    now_s = read_progress(KAFKA_35).started_s
    assert math.isnan(flow(KAFKA_35, Arrivals(now_s - 10, (10_000.0,))).arrival_per_s)
    assert math.isnan(flow(KAFKA_35, Arrivals(now_s, (460.0,))).arrival_per_s)


@pytest.mark.parametrize("latest", [None, "earliest", {"logOffset": 3}, {"orders": {"0": None}}, [1, 2], True])
def test_what_the_source_does_not_say_in_rows_is_unknown(latest: Any) -> None:
    sample = flow(changed(latestOffset=latest), Arrivals(0.0, (1.0,)))
    assert math.isnan(sample.pending_rows)
    assert math.isnan(sample.arrival_per_s)
    assert sample.rows == 300


def test_a_latest_offset_from_before_the_batch_is_no_negative_backlog() -> None:
    assert flow(changed(latestOffset={"orders": {"0": 1, "1": 1}})).pending_rows == 0.0


@pytest.mark.parametrize("query", sorted(RECORDED))
def test_recorded_progress_of_the_rate_source_counts_rows_not_seconds(query: str) -> None:
    progress = read_progress(RECORDED[query]["progress"])
    for source, raw in zip(progress.sources, RECORDED[query]["progress"]["sources"], strict=True):
        taken = source.end - row_number(raw["description"], raw["startOffset"])
        assert taken == source.rows == raw["numInputRows"]


def test_a_query_without_state_is_known_to_have_none() -> None:
    sample = flow(RECORDED["stateless"]["progress"])
    assert (sample.updated_keys, sample.state_rows) == (0.0, 0.0)
    assert math.isnan(sample.watermark_gap_s)


def test_two_sources_of_one_stage_are_one_flow_and_of_two_stages_two() -> None:
    read = read_progress(RECORDED["union"]["progress"])
    (one,) = flows(read, query="q", trigger_s=1, names=["scan", "scan"], now=arrivals(read), before=None)
    assert one.rows == read.sources[0].rows + read.sources[1].rows
    two = flows(read, query="q", trigger_s=1, names=["scan", "scan-2"], now=arrivals(read), before=None)
    assert [sample.source for sample in two] == ["scan", "scan-2"]
    assert sum(sample.updated_keys for sample in two) == read.updated_keys


def test_an_idle_trigger_is_zero_arrival() -> None:
    (sample,) = idle_flows("q", ["scan"], 5.0)
    assert (sample.rows, sample.arrival_per_s, sample.pending_rows, sample.seconds) == (0.0, 0.0, 0.0, 0.0)


def test_a_watermark_at_the_epoch_is_unknown() -> None:
    progress = deepcopy(KAFKA_35)
    progress["eventTime"] = {"watermark": "1970-01-01T00:00:00.000Z"}
    assert math.isnan(flow(progress).watermark_gap_s)


@pytest.mark.parametrize(
    ("description", "offset", "rows"),
    [
        ("homeostat", {"row": 12, "started_s": 1e9}, 12.0),
        ("RatePerMicroBatch", {"offset": 30, "timestamp": 5}, 30.0),
        ("MemoryStream[value#1]", 4, 4.0),
        ("RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=0, numPartitions=1", 3, 21.0),
        ("RateStreamV2[rowsPerSecond=7, rampUpTimeSeconds=60, numPartitions=1", 3, NAN),
        ("FileStreamSource[file:/in]", {"logOffset": 3}, NAN),
        ("DeltaSource[file:/t]", {"reservoirVersion": 3, "index": 1}, NAN),
        ("mine", {"partition-1": {"index": 3, "closed": True}}, NAN),
        ("mine", {"offset": "3"}, NAN),
        ("", None, NAN),
    ],
)
def test_offsets_are_rows_only_where_they_count_rows(description: str, offset: Any, rows: float) -> None:
    assert row_number(description, offset) == pytest.approx(rows, nan_ok=True)


@pytest.mark.parametrize("missing", ["durationMs", "runId", "batchId", "timestamp", "sources"])
def test_what_is_not_progress_is_refused(missing: str) -> None:
    broken = {name: value for name, value in KAFKA_35.items() if name != missing}
    with pytest.raises((KeyError, ValueError, TypeError)):
        read_progress(broken)


def test_the_rows_of_the_largest_keys_are_read_as_far_as_they_are_told() -> None:
    """Spark before 4.2 tells the largest alone, and a batch without rows has none."""
    metrics = {"rows": 1000, "largest": 500, "key": "a", "most": "500 300 2"}
    observed = {"homeostat new": metrics, "homeostat old": {**metrics, "most": None}, "homeostat idle": {"rows": None}}
    keys = read_progress({**KAFKA_35, "observedMetrics": observed | {"mine": {"rows": 3}}}).keys

    sketched = {"rows": 10, "top": '[{"item":"a","count":6},{"item":"b","count":3}]'}
    assert read_progress({**KAFKA_35, "observedMetrics": {"homeostat own": sketched}}).keys == {
        "own": KeyLoad(10, 6, "a", (3,))
    }
    assert keys == {"new": KeyLoad(1000, 500, "a", (300, 2)), "old": KeyLoad(1000, 500, "a")}
    assert [load.hot_share(8) for load in keys.values()] == [0.8, 0.5]


def test_event_time_and_watermark_are_moments_and_unknown_before_the_first_row() -> None:
    report = {
        "id": "q",
        "runId": "run-1",
        "batchId": 1,
        "timestamp": "2026-11-18T10:46:08.524Z",
        "durationMs": {"triggerExecution": 1557},
        "sources": [],
    }
    event_time = {"max": "2026-11-18T10:46:01.000Z", "watermark": "2026-11-18T10:45:51.000Z"}
    progress = read_progress({**report, "eventTime": event_time})
    assert progress.event_time_s - progress.watermark_s == 10.0
    assert round(progress.timestamp_s - progress.event_time_s, 3) == 7.524
    none_yet = read_progress({**report, "eventTime": {"watermark": "1970-01-01T00:00:00.000Z"}})
    far_ahead = read_progress({**report, "eventTime": {"max": "+10000-01-01T00:00:00.000Z"}})
    assert all(map(math.isnan, (none_yet.event_time_s, none_yet.watermark_s, far_ahead.event_time_s)))
