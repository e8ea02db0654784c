"""The record of a run, built from the event log that a real cluster wrote."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.recorded_data.run import RecordedComponent
from homeostat.spark.outside.logged_run import record
from support.paths import RECORDED as LOGS

# A word count that sleeps for each row, on two executors of a standalone cluster, without fields that are not read.
RECORDED = LOGS / "wordcount.jsonl"
LINE = '{"Event":"SparkListenerExecutorRemoved","Timestamp":1,"Executor ID":"1"}\n'


def test_a_run_of_a_real_cluster() -> None:
    run = record(RECORDED)
    assert (run.application, run.query, run.locality_wait_s, run.notes) == ("twin", "twin", 3.0, ())
    assert run.components == (
        RecordedComponent("scan"),
        RecordedComponent("aggregate", ("scan",), keyed=True, stateful=True),
    )
    assert [(executor.host, executor.slots) for executor in run.executors] == [("127.0.0.2", 1), ("127.0.0.3", 1)]
    # The very first batch had no rows.
    assert [batch.number for batch in run.batches] == list(range(1, 15))
    for batch in run.batches:
        scan, aggregate = batch.tasks["scan"], batch.tasks["aggregate"]
        assert (len(scan.rows), len(aggregate.rows)) == (6, 4)
        assert scan.rows.sum() == batch.rows
        assert aggregate.rows.sum() == scan.rows_out.sum()
        assert np.isnan(scan.keys).all()
        assert 0 < aggregate.keys.sum() <= batch.state_rows
        assert set(scan.executor.tolist()) == {"0", "1"}
        assert batch.started_s < scan.start_s.min() < scan.finish_s.max() <= aggregate.start_s.min()
        assert aggregate.finish_s.max() < batch.ended_s
    assert sum(batch.rows for batch in run.batches) == run.batches[-1].arrived_rows
    assert run.batches[-1].pending_rows == 0


def test_a_log_that_is_cut_off_still_gives_a_run(tmp_path: Path) -> None:
    text = RECORDED.read_bytes()
    cut = tmp_path / "app-1.inprogress"
    cut.write_bytes(text[: len(text) * 2 // 3] + b"\x00")
    whole, part = record(RECORDED), record(cut)
    assert 5 < len(part.batches) < len(whole.batches)
    assert part.batches[4].seconds == whole.batches[4].seconds


def test_damaged_lines_are_counted_in_a_note(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    cut, empty = LINE[:-5] + "\n", '{"Event":"SparkListenerTaskEnd"}\n'
    path.write_text(RECORDED.read_text() + cut + empty)
    assert record(path).notes == ("skipped 2 damaged lines of the log",)


def test_a_log_without_batches_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app-1").write_text(LINE)
    with pytest.raises(ConfigError, match="no finished batch"):
        record(tmp_path / "app-1")
