from __future__ import annotations

import json
import os
from pathlib import Path

import pyarrow as pa
import pytest

from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import EventLog
from homeostat.spark.outside.event_log_pruning import prune_event_logs, size_of


def line(kind: str, **fields: object) -> bytes:
    return json.dumps({"Event": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def part(log: Path, number: int, *lines: bytes, zstd: bool = True) -> Path:
    log.mkdir(parents=True, exist_ok=True)
    path = log / f"events_{number}_app-1{'.zstd' if zstd else ''}"
    if zstd:
        with pa.CompressedOutputStream(str(path), "zstd") as stream:
            stream.write(b"".join(lines))
    else:
        path.write_bytes(b"".join(lines))
    return path


def batches(number: int) -> list[bytes]:
    """Task ends that do not compress."""
    return [line(event_log.TASK_END, part=number, noise=os.urandom(40).hex()) for _ in range(200)]


def rolling(directory: Path, zstd: bool = True) -> Path:
    log = directory / "eventlog_v2_app-1"
    start = [line(event_log.APPLICATION_START, Name="words"), line(event_log.ENVIRONMENT)]
    part(log, 1, *start, line(event_log.EXECUTOR_ADDED, id=1), *batches(1), zstd=zstd)
    part(log, 2, *batches(2), line(event_log.EXECUTOR_ADDED, id=2), zstd=zstd)
    part(log, 3, *batches(3), zstd=zstd)
    part(log, 4, *batches(4), zstd=zstd)
    return log


def kinds(events: list[event_log.Event]) -> list[str]:
    return [str(event["Event"]) for event in events]


@pytest.mark.parametrize("zstd", [True, False])
def test_the_oldest_parts_go_and_what_readers_need_of_them_stays(tmp_path: Path, zstd: bool) -> None:
    log = rolling(tmp_path, zstd)
    whole = size_of(log)
    freed = prune_event_logs(tmp_path, whole * 6 // 10)
    assert size_of(log) == whole - freed <= whole * 6 // 10
    names = sorted(path.name for path in log.iterdir())
    suffix = ".zstd" if zstd else ""
    assert names == [f"events_2_app-1{suffix}.compact", f"events_3_app-1{suffix}", f"events_4_app-1{suffix}"]
    events = list(EventLog(tmp_path).new_events())
    assert kinds(events)[:4] == [
        event_log.APPLICATION_START,
        event_log.ENVIRONMENT,
        event_log.EXECUTOR_ADDED,
        event_log.EXECUTOR_ADDED,
    ]
    assert {event["part"] for event in events if event["Event"] == event_log.TASK_END} == {3, 4}


def test_a_compacted_file_is_folded_into_the_next_one(tmp_path: Path) -> None:
    log = rolling(tmp_path)
    whole = size_of(log)
    prune_event_logs(tmp_path, whole * 8 // 10)
    prune_event_logs(tmp_path, whole * 4 // 10)
    assert sorted(path.name for path in log.iterdir()) == ["events_3_app-1.zstd.compact", "events_4_app-1.zstd"]
    assert kinds(list(EventLog(tmp_path).new_events())).count(event_log.EXECUTOR_ADDED) == 2


def test_the_part_that_is_written_stays_however_large(tmp_path: Path) -> None:
    log = rolling(tmp_path)
    prune_event_logs(tmp_path, 1)
    assert "events_4_app-1.zstd" in {path.name for path in log.iterdir()}
    assert prune_event_logs(tmp_path, 1) == 0


def test_logs_of_earlier_runs_go_first(tmp_path: Path) -> None:
    old, older = tmp_path / "app-0", tmp_path / "eventlog_v2_app-00"
    old.write_bytes(b"x" * 50_000)
    part(older, 1, *batches(0))
    for number, path in enumerate((older, old), 1):
        os.utime(path, (number, number))
    log = rolling(tmp_path)
    prune_event_logs(tmp_path, size_of(log) + 50_000)
    assert (older.exists(), old.exists()) == (False, True)
    prune_event_logs(tmp_path, size_of(log))
    assert not old.exists()
    assert len(list(log.iterdir())) == 4


def test_a_reader_that_follows_reads_every_event_once_while_parts_are_deleted(tmp_path: Path) -> None:
    log = rolling(tmp_path)
    reader = EventLog(log)
    before = list(reader.new_events())
    prune_event_logs(tmp_path, size_of(log) // 2)
    part(log, 5, *batches(5))
    later = list(reader.new_events())
    assert {event["part"] for event in later} == {5}
    prune_event_logs(tmp_path, 1)
    assert list(reader.new_events()) == []
    assert len(before) == 4 * 200 + 4


def test_nothing_there_is_nothing_to_do(tmp_path: Path) -> None:
    assert prune_event_logs(tmp_path / "events", 1) == 0
    assert prune_event_logs(tmp_path, 1) == 0
