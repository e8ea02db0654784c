"""The command reads traces, runs policies on them, and prints who did how well."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from homeostat.cli.main import run


@pytest.fixture
def trace(tmp_path: Path) -> Path:
    path = tmp_path / "load.csv"
    lines = [f"{60 * minute},{100 if 10 <= minute < 25 else 50}" for minute in range(40)]
    path.write_text("timestamp,value\n" + "\n".join(lines), encoding="utf-8")
    return path


def test_it_prints_a_table_and_json(
    trace: Path, capsys: pytest.CaptureFixture[str], computed_once: Callable[[str], None]
) -> None:
    computed_once("homeostat.lab.bench.duel.measure")
    arguments = ["bench", "duel", "--trace", str(trace), "--policy", "largest", "--seeds", "1", "--most", "4"]
    assert run([*arguments, "--json"]) == 0
    (one,) = json.loads(capsys.readouterr().out)["rounds"]
    assert one["contenders"]["largest"]["violation_s"]["median"] == 0.0
    assert run(arguments) == 0
    assert "largest" in capsys.readouterr().out


def test_a_wrong_engine_or_policy_is_refused(trace: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["bench", "duel", "--trace", str(trace), "--engine", "steam"]) == 2
    assert "steam" in capsys.readouterr().err
    assert run(["bench", "duel", "--trace", str(trace), "--policy", "nobody"]) == 2
    assert "nobody" in capsys.readouterr().err
