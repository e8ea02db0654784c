from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from homeostat.runtime import file_limits
from homeostat.runtime.file_limits import FileKeeper, cut_log
from homeostat.settings import FileLimits
from homeostat.spark.cluster.leftovers import java_files

LIMITS = FileLimits.model_validate({"event_logs": "50 MB", "driver_log": "1 MB"})


def test_a_log_is_cut_while_a_process_writes_it(tmp_path: Path) -> None:
    log = tmp_path / "driver.err"
    write = "import sys\nfor line in sys.stdin: print('x' * 999, flush=True); print('ok', file=sys.stderr, flush=True)"
    with (
        log.open("ab") as output,
        subprocess.Popen(
            [sys.executable, "-c", write], stdin=subprocess.PIPE, stdout=output, stderr=subprocess.PIPE, text=True
        ) as writer,
    ):
        assert writer.stdin is not None
        assert writer.stderr is not None
        for _ in range(30):
            writer.stdin.write("\n")
            writer.stdin.flush()
            writer.stderr.readline()
            cut_log(log, 20_000)
            both = sum(path.stat().st_size for path in tmp_path.iterdir())
            assert both <= 21_000
    assert (tmp_path / "driver.err.1").read_bytes().startswith(b"x")
    assert b"\0" not in log.read_bytes()


def test_a_short_log_and_a_missing_one_are_left_alone(tmp_path: Path) -> None:
    (tmp_path / "a.log").write_text("short")
    assert not cut_log(tmp_path / "a.log", 1_000)
    assert not cut_log(tmp_path / "missing.log", 1_000)
    assert (tmp_path / "a.log").read_text() == "short"


def test_the_files_of_an_application_are_kept_small_now_and_then(tmp_path: Path) -> None:
    names = ("logs/driver.err", "cluster/logs/master.log")
    for name in names:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_bytes(b"x" * 900_000)
    library = java_files(tmp_path) / "librocksdbjni1.so"
    library.touch()
    os.utime(library, (0.0, 0.0))
    complaints: list[str] = []
    keeper = FileKeeper(tmp_path, LIMITS, complaints.append)
    keeper.look()
    assert [(tmp_path / name).stat().st_size for name in names] == [0, 0]
    assert not library.exists()
    (tmp_path / names[0]).write_bytes(b"x" * 900_000)
    keeper.look()
    assert (tmp_path / names[0]).stat().st_size == 900_000, "not yet due again"
    assert complaints == []


def test_a_failure_is_reported_once_and_does_no_harm(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(directory: Path, most_bytes: int) -> int:
        raise PermissionError("no")

    monkeypatch.setattr(file_limits, "prune_event_logs", fail)
    complaints: list[str] = []
    keeper = FileKeeper(tmp_path, LIMITS, complaints.append)
    for _ in range(3):
        keeper.keep_small()
    assert len(complaints) == 1
