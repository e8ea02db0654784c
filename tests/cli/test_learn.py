"""`homeostat learn`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Homeostat
from homeostat.diagnosers.strengths import strengths_in_use

pytestmark = pytest.mark.slow


def test_a_table_is_written_that_the_settings_can_name(homeostat: Homeostat, tmp_path: Path) -> None:
    answer = homeostat("learn", "--runs", 2, "--first-seed", 20, "--out", tmp_path / "table.json", "--json")
    assert answer.code == 0
    causes = {each["cause"]: each for each in answer.json["causes"]}
    assert causes[""]["examples"] == answer.json["examples"] > 0
    kept = {cause for cause, each in causes.items() if each["kept"]}
    assert json.loads((tmp_path / "table.json").read_text())["causes"].keys() >= {"", *kept}
    assert strengths_in_use(str(tmp_path / "table.json")).other is not None


def test_a_file_that_is_no_table_is_one_line(homeostat: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "table.json").write_text("[]")
    answer = homeostat("sim", "run", "demo", "--set", "plugins.strengths=table.json")
    assert answer.code == 2, answer.err
    assert "homeostat learn --out" in answer.err


def test_a_model_of_your_own_that_cannot_be_loaded_is_one_line(homeostat: Homeostat) -> None:
    answer = homeostat("learn", "--runs", 0, "--model", "no_such_module:model")
    assert answer.code == 2
    assert "cannot import 'no_such_module'" in answer.err
