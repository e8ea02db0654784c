"""Event logs in all their forms."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.spark.outside.event_log import EventLog, progress_of


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
    with pytest.raises(ConfigError, match="the directory has no event log of app-4"):
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
