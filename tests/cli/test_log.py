"""`homeostat log` and `homeostat explain`: from a run to the story of each decision."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.cli.main import run

Homeostat = Callable[..., Any]


@pytest.fixture(scope="module")
def log_file(tmp_path_factory: pytest.TempPathFactory, scenario_text: str) -> Path:
    folder = tmp_path_factory.mktemp("log")
    (folder / "small.toml").write_text(scenario_text)
    assert run(["sim", "run", str(folder / "small.toml"), "--store", str(folder / "log.sqlite")]) == 0
    return folder / "log.sqlite"


@pytest.fixture
def logged(homeostat: Homeostat, log_file: Path, tmp_path: Path) -> Homeostat:
    """In a directory that holds the log of one run."""
    shutil.copy(log_file, tmp_path / "homeostat.sqlite")
    return homeostat


@pytest.mark.slow
def test_the_log_of_the_newest_run_is_found_by_itself(logged: Homeostat) -> None:
    result = logged("log", "--last", 0)
    assert result.code == 0
    kinds = [line.split()[-1] for line in result.out.splitlines()]
    assert len(kinds) > 5
    records = logged("log", "--last", 0, "--json").json
    assert len(records) == len(kinds) - 1
    assert {"symptom", "diagnosis", "proposal", "action", "receipt", "outcome"} <= {r["kind"] for r in records}
    assert [r["at_s"] for r in records] == sorted(r["at_s"] for r in records)


@pytest.mark.slow
def test_the_log_can_be_narrowed(logged: Homeostat) -> None:
    actions = logged("log", "--kind", "action", "--json").json
    assert actions
    assert {record["kind"] for record in actions} == {"action"}
    both = logged("log", "--kind", "action", "--kind", "outcome", "--component", "count", "--json").json
    assert {record["component"] for record in both} == {"count"}
    assert len(logged("log", "--last", 2, "--json").json) == 2
    assert logged("log", "--last", 2, "--json").json == logged("log", "--last", 0, "--json").json[-2:]


def test_explain_tells_the_whole_chain(logged: Homeostat) -> None:
    result = logged("explain", "a-1")
    assert result.code == 0
    for words in ("What was observed", "What was diagnosed", "What was done", "What came of it", "under-provisioned"):
        assert words in result.out
    answer = logged("explain", "a-1", "--json").json
    assert answer["text"] == result.out.strip()
    kinds = {record["kind"] for record in answer["chain"]}
    assert {"symptom", "diagnosis", "proposal", "action", "receipt", "outcome"} <= kinds


@pytest.mark.slow
def test_the_same_run_again_is_a_run_of_its_own(logged: Homeostat, scenario: Path) -> None:
    first = logged("log", "--last", 0, "--json").out
    assert logged("log", "--run", "small/provisioning/1", "--last", 0, "--json").out == first
    result = logged("sim", "run", scenario, "--store", "homeostat.sqlite")
    assert "small/provisioning/1#2" in result.err
    assert logged("log", "--last", 0, "--json").out == first


def test_another_log_by_the_environment(logged: Homeostat, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "homeostat.sqlite").rename(tmp_path / "kept.sqlite")
    assert logged("log").code == 2
    monkeypatch.setenv("HOMEOSTAT_STORE", str(tmp_path / "kept.sqlite"))
    assert logged("log").code == 0


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("explain", "a-99"), "a-"),
        (("log", "--run", "small/provisoning/1"), "small/provisioning/1"),
        (("log", "--kind", "actions"), "action"),
        (("log", "--component", "cuont"), "count"),
    ],
)
def test_what_is_not_in_the_log_is_refused_with_the_nearest(
    logged: Homeostat, arguments: tuple[str, ...], words: str
) -> None:
    result = logged(*arguments)
    assert result.code == 2
    assert len(result.err.strip().splitlines()) == 1
    assert words in result.err


def test_the_log_may_be_named_in_homeostat_toml(logged: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "homeostat.sqlite").rename(tmp_path / "kept.sqlite")
    (tmp_path / "homeostat.toml").write_text('store = "kept.sqlite"\n')
    assert logged("log").code == 0
    assert logged("log", "--store", "other.sqlite").code == 2
