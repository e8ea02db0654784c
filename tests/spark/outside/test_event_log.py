"""Event logs in all their shapes, and a run put together from one that a real cluster wrote."""

from __future__ import annotations

import json
import os
from pathlib import Path

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.recordings.run import RecordedComponent
from homeostat.spark.outside.event_log import EventLog, progress_of
from homeostat.spark.outside.recorder import record
from support.paths import RECORDED as LOGS

# A word count that waits per row, on two executors of a standalone cluster; fields that nobody reads are left out.
RECORDED = LOGS / "wordcount.jsonl"


def line(executor: int) -> str:
    event = {"Event": "SparkListenerExecutorRemoved", "Timestamp": 1, "Executor ID": str(executor)}
    return json.dumps(event, separators=(",", ":")) + "\n"


def executors(log: EventLog) -> list[str]:
    return [event["Executor ID"] for event in log.new_events()]


def test_events_are_read_once_and_half_a_line_later(tmp_path: Path) -> None:
    path = tmp_path / "app-1.inprogress"
    path.write_text(line(1) + line(2)[:20])
    log = EventLog(path)
    assert executors(log) == ["1"]
    path.write_text(line(1) + line(2) + line(3))
    assert executors(log) == ["2", "3"]
    path.rename(tmp_path / "app-1")
    assert executors(log) == []


def test_other_kinds_and_damaged_lines_are_left_out(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    path.write_text('{"Event":"SparkListenerLogStart"}\n\n' + line(1)[:-5] + "\n" + "no event\n" + line(2))
    log = EventLog(path)
    assert executors(log) == ["2"]
    assert log.damaged_lines == 1


def test_a_rolling_log_is_read_in_the_order_of_its_numbers(tmp_path: Path) -> None:
    for number in (10, 9, 2):
        (tmp_path / f"events_{number}_app-1").write_text(line(number))
    (tmp_path / "appstatus_app-1").write_text("")
    log = EventLog(tmp_path)
    assert executors(log) == ["2", "9", "10"]
    (tmp_path / "events_11_app-1").write_text(line(11))
    assert executors(log) == ["11"]


def test_a_compacted_file_stands_for_those_before_it(tmp_path: Path) -> None:
    for number in (1, 2, 3):
        (tmp_path / f"events_{number}_app-1").write_text(line(number))
    (tmp_path / "events_2_app-1.compact").write_text(line(12))
    assert executors(EventLog(tmp_path)) == ["12", "3"]


def test_a_directory_of_logs_gives_the_newest(tmp_path: Path) -> None:
    rolling = tmp_path / "eventlog_v2_app-2"
    rolling.mkdir()
    (rolling / "events_1_app-2").write_text(line(2))
    (tmp_path / "app-1").write_text(line(1))
    os.utime(tmp_path / "app-1", (1, 1))
    assert executors(EventLog(tmp_path)) == ["2"]
    os.utime(rolling, (0, 0))
    assert executors(EventLog(tmp_path)) == ["1"]


def test_a_directory_of_logs_gives_that_of_the_application(tmp_path: Path) -> None:
    for name, number in (("app-1.inprogress", 1), ("app-10_1", 10), ("app-1_2", 12)):
        (tmp_path / name).write_text(line(number))
        os.utime(tmp_path / name, (number, number))
    rolling = tmp_path / "eventlog_v2_app-3"
    rolling.mkdir()
    (rolling / "events_1_app-3").write_text(line(3))
    assert executors(EventLog(tmp_path, "app-1")) == ["12"]
    assert executors(EventLog(tmp_path, "app-10")) == ["10"]
    assert executors(EventLog(tmp_path, "app-3")) == ["3"]
    with pytest.raises(ConfigError, match="it holds no event log of app-4"):
        EventLog(tmp_path, "app-4")
    assert executors(EventLog(rolling, "app-4")) == ["3"], "what is named itself is taken"


def test_zstd_is_read_up_to_where_it_is_cut_off(tmp_path: Path) -> None:
    import pyarrow as pa

    path = tmp_path / "app-1.zstd"
    with pa.output_stream(str(path), compression="zstd") as stream:
        for number in range(50_000):
            stream.write(line(number).encode())
    log = EventLog(path)
    assert executors(log) == [str(number) for number in range(50_000)]
    assert executors(log) == []
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    read = executors(EventLog(path))
    assert read == [str(number) for number in range(len(read))]
    assert len(read) > 10_000


@pytest.mark.parametrize(
    ("name", "message"), [("missing", "no such"), (".", "no event log"), ("app-1.lz4", "compression")]
)
def test_what_cannot_be_read_is_said_in_one_line(tmp_path: Path, name: str, message: str) -> None:
    if name.endswith(".lz4"):
        (tmp_path / name).write_bytes(b"LZ4Block")
    with pytest.raises(ConfigError, match=message):
        executors(EventLog(tmp_path / name))


def test_offsets_are_as_listeners_get_them() -> None:
    source = {"startOffset": None, "endOffset": '{"row": 5}', "latestOffset": "not JSON", "numInputRows": 5}
    assert progress_of({"progress": {"sources": [source]}})["sources"] == [
        {"startOffset": None, "endOffset": {"row": 5}, "latestOffset": "not JSON", "numInputRows": 5}
    ]


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


def test_damaged_lines_are_told(tmp_path: Path) -> None:
    path = tmp_path / "app-1"
    cut, empty = line(1)[:-5] + "\n", '{"Event":"SparkListenerTaskEnd"}\n'
    path.write_text(RECORDED.read_text() + cut + empty)
    assert record(path).notes == ("damaged lines of the log were left out: 2",)


def test_a_log_without_batches_is_refused(tmp_path: Path) -> None:
    (tmp_path / "app-1").write_text(line(1))
    with pytest.raises(ConfigError, match="no batch"):
        record(tmp_path / "app-1")
