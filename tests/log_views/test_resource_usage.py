"""What is used is read from files and processes; what cannot be read is unknown."""

from __future__ import annotations

import math
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import psutil
import pytest

from homeostat.log_views.resource_usage import Use, process_uses, resource_usage

LIMITS = {
    "log": 2e9,
    "event_logs": 5e8,
    "driver_log": 6e7,
    "least_free": 2e9,
    "most_savepoints": 20,
    "savepoints": 2e10,
}


def announcement(directory: Path, **more: Any) -> dict[str, Any]:
    facts = {"process": os.getpid(), "store": str(directory / "log.sqlite"), "queries": {"words": "clicks/words"}}
    return {**facts, "limits": LIMITS, **more}


def put(file: Path, size: int) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_bytes(b"x" * size)


def uses(directory: Path, about: dict[str, Any], *, alive: bool = True) -> dict[str, Use]:
    return {use.what: use for use in resource_usage(directory, about, alive).uses}


def test_files_are_counted_with_what_belongs_to_them(tmp_path: Path) -> None:
    put(tmp_path / "log.sqlite", 100)
    put(tmp_path / "log.sqlite-wal", 30)
    put(tmp_path / "events" / "eventlog_v2_app-1" / "events_1_app-1.zstd", 70)
    put(tmp_path / "logs" / "driver.log", 20)
    put(tmp_path / "logs" / "driver.log.1", 40)
    put(tmp_path / "logs" / "driver.err", 50)
    put(tmp_path / "words.savepoints" / "batch-1" / "manifest.json", 11)
    about = announcement(tmp_path, checkpoints={"words": str(tmp_path / "words")})
    read = uses(tmp_path, about)
    log = read["largest log of the driver"]
    assert (log.used, log.bound, log.where) == (60, 6e7, str(tmp_path / "logs" / "driver.log"))
    amounts = {what: (use.used, use.bound) for what, use in read.items()}
    assert amounts["log"] == (130, 2e9)
    assert amounts["event logs"] == (70, 5e8)
    assert amounts["savepoints of words"] == (1, 20)
    assert amounts["space of savepoints of words"] == (11, 2e10)


def test_what_is_not_there_or_not_local_is_unknown_and_not_zero(tmp_path: Path) -> None:
    read = uses(tmp_path, announcement(tmp_path, checkpoints={"words": "s3a://bucket/words"}), alive=False)
    assert all(math.isnan(use.used) for use in read.values())
    assert len(read) == 11


def test_an_announcement_without_limits_has_no_bounds(tmp_path: Path) -> None:
    about = {**announcement(tmp_path), "limits": None}
    usage = resource_usage(tmp_path, about, alive=False)
    of_files = [use for use in usage.uses if not use.what.endswith(("Python", "Java"))]
    assert all(math.isnan(use.bound) for use in of_files)
    assert [math.isnan(each.alert_below_bytes) for each in usage.disks] == [True]


def test_a_running_process_has_memory_threads_and_files_and_one_that_has_ended_has_none(tmp_path: Path) -> None:
    own = {use.what: use for use in process_uses("Python", psutil.Process())}
    assert own["memory of the driver's Python"].used < own["memory of the driver's Python"].bound
    assert own["threads of the driver's Python"].used >= 1
    assert own["open files of the driver's Python"].used >= 3
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    process = psutil.Process(child.pid)
    child.communicate(b"\n")
    assert all(math.isnan(use.used) for use in process_uses("Python", process))


def test_each_disk_says_what_it_is_used_for_and_when_there_is_an_alert(tmp_path: Path) -> None:
    disks = {"log": str(tmp_path), "checkpoints": str(tmp_path / "checkpoints")}
    (use,) = resource_usage(tmp_path, announcement(tmp_path, disks=disks), alive=False).disks
    assert use.disk.uses == ("log", "checkpoints")
    assert use.disk.free_bytes <= use.disk.total_bytes
    assert use.alert_below_bytes == pytest.approx(max(2e9, min(0.05 * use.disk.total_bytes, 20e9)))
