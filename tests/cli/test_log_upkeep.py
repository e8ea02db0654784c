from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeostat.cli.main import run
from homeostat.core.records import BATCH, HOUR
from homeostat.store.sqlite import SqliteStore
from support.old_logs import RUN, write_old_log


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    store = SqliteStore(tmp_path / "log.sqlite")
    write_old_log(store, 2.0)
    store.close()
    return tmp_path / "log.sqlite"


def counts(log: Path) -> tuple[int, int]:
    store = SqliteStore(log, read_only=True)
    try:
        return len(store.records(RUN, kinds=(BATCH,))), len(store.records(RUN, kinds=(HOUR,)))
    finally:
        store.close()


def test_prune_summarises_and_deletes_as_the_settings_say(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    Path("homeostat.toml").write_text('[log]\ndetail = "1 d"\n')
    assert run(["log", "prune", "--store", str(log), "--json"]) == 0
    answer = json.loads(capsys.readouterr().out)
    assert answer["deleted"] > 500
    assert answer["summaries"] > 1_000
    left, hours = counts(log)
    assert left == pytest.approx(720, abs=31)
    assert hours == 47
    assert run(["log", "prune", "--store", str(log), "--set", "log.detail=6 h", "--set", "log.minutes=12 h"]) == 0
    out = capsys.readouterr().out
    assert "deleted" in out
    assert "now (" in out
    assert counts(log)[0] < left


def test_compact_makes_the_file_smaller_and_deletes_nothing(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    store = SqliteStore(log)
    store.maintain(lambda connection: connection.execute("DELETE FROM records WHERE number % 3 > 0"))
    store.close()
    before, records = log.stat().st_size, counts(log)
    assert run(["log", "compact", "--store", str(log)]) == 0
    assert log.stat().st_size < before / 1.5
    assert counts(log) == records
    assert "before" in capsys.readouterr().out


@pytest.mark.parametrize("command", ["prune", "compact"])
def test_a_log_that_is_none_is_refused_and_left_alone(
    command: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert run(["log", command, "--store", "missing.sqlite"]) == 2
    Path("empty.sqlite").touch()
    assert run(["log", command, "--store", "empty.sqlite"]) != 0
    assert Path("empty.sqlite").stat().st_size == 0
    assert capsys.readouterr().err.count("homeostat: ") == 2


def test_log_still_prints_the_log(log: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["log", "--store", str(log), "--kind", "batch", "--last", "1"]) == 0
    assert "batch 1439" in capsys.readouterr().out
