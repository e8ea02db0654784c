"""What an event log adds to REST, on the log of a real run (`recorded/wordcount.jsonl`)."""

from __future__ import annotations

import json
import math
from pathlib import Path

from homeostat.core.events import Apply, Receipt
from homeostat.spark.outside.event_log import QUERY_PROGRESS, EventLog
from homeostat.spark.outside.remote_application import _RUNS_KEPT, LogQueries, WatchedApplication, WatchedQuery
from homeostat.spark.sense.progress import read_progress
from homeostat.spark.sense.rest_client import RestClient
from support.paths import RECORDED

LOG = RECORDED / "wordcount.jsonl"


def test_queries_and_their_progress_are_in_the_log() -> None:
    for handle in (handles := LogQueries(EventLog(LOG)).handles()):
        batches = [read_progress(progress) for progress in handle.recent_progress()]
        assert {progress.run for progress in batches} == {handle.run_id}
        assert [p.batch for p in batches] == sorted((p.batch for p in batches), reverse=True)
    assert handles


def test_what_rest_does_not_show_is_in_the_log() -> None:
    """Over REST alone all of it is unknown: `test_sensing` watches a real application so."""
    (handle,) = LogQueries(EventLog(LOG)).handles()
    for progress in map(read_progress, handle.recent_progress()):
        (source,) = progress.sources
        figures = (source.rows, source.end, source.latest, progress.state_rows, progress.updated_keys)
        assert all(map(math.isfinite, figures))
        assert progress.states
        assert {"addBatch", "queryPlanning"} <= set(progress.phases_s)


def test_operators_of_stages_are_in_the_log() -> None:
    queries = LogQueries(EventLog(LOG))
    assert queries.graph(0) is None
    queries.handles()
    graphs = [graph for stage in range(1000) if (graph := queries.graph(stage)) is not None]
    assert any("MicroBatchScan" in {operator.name for operator in graph.operators} for graph in graphs)


def test_of_queries_that_restart_for_years_the_newest_runs_are_kept(tmp_path: Path) -> None:
    events = [json.loads(line) for line in LOG.read_text().splitlines() if QUERY_PROGRESS in line]
    log = tmp_path / "events"
    with log.open("w") as lines:
        for number in range(3 * _RUNS_KEPT):
            for run in ("steady", f"run-{number}"):
                stamp = f"2026-01-01T{number // 60:02}:{number % 60:02}:00.000Z"
                progress = {**events[0]["progress"], "runId": run, "timestamp": stamp}
                lines.write(json.dumps({**events[0], "progress": progress}, separators=(",", ":")) + "\n")
    runs = [handle.run_id for handle in LogQueries(EventLog(log)).handles()]
    assert len(runs) == _RUNS_KEPT
    assert {"steady", f"run-{3 * _RUNS_KEPT - 1}"} <= set(runs)


def test_what_is_only_watched_cannot_be_changed() -> None:
    query = WatchedQuery(WatchedApplication(RestClient("http://127.0.0.1:1")), "q")
    query.apply(Apply("a-1", 0.0, query.describe().configuration, (), 10.0))
    (receipt,) = query.wait(0.0)
    assert isinstance(receipt, Receipt)
    assert not receipt.applied
