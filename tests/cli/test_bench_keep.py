"""A kept result says how it was measured, and tells nothing about the directories of the machine."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.cli.bench_keep import short_paths, without_directories

Homeostat = Callable[..., Any]
SYNOPSES = ("bench", "synopses", "--keys", "1000")


def test_the_result_is_kept_with_its_circumstances(homeostat: Homeostat, tmp_path: Path) -> None:
    printed = homeostat(*SYNOPSES, "--json", "--keep", str(tmp_path / "results"))
    assert printed.code == 0
    kept = json.loads((tmp_path / "results" / "synopses.json").read_text(encoding="utf-8"))
    assert kept["command"] == "homeostat bench synopses --keys 1000"
    assert kept["result"] == json.loads(printed.out)
    assert {"commit", "measured_on", "version"} <= set(kept)
    assert kept["machine"]["cores"] >= 1


def test_a_file_can_be_named(homeostat: Homeostat, tmp_path: Path) -> None:
    assert homeostat(*SYNOPSES, "--keep", str(tmp_path / "synopses-small.json")).code == 0
    assert [path.name for path in tmp_path.iterdir()] == ["synopses-small.json"]


def test_a_place_where_nothing_can_be_kept_is_refused_before_the_measurement(
    homeostat: Homeostat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("homeostat.lab.bench.synopses.measure", lambda **_: pytest.fail("measured"))
    (tmp_path / "file").touch()
    for target, complaint in (("noise.json", "'synopses'"), ("file/results", "cannot create the directory")):
        result = homeostat(*SYNOPSES, "--keep", str(tmp_path / target))
        assert (result.code, result.out) == (2, "")
        assert complaint in result.err


def test_seeds_and_options_are_kept_and_directories_are_not(
    homeostat: Homeostat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def measure(loads: Any, tunings: Any, rings: Any, *, seeds: int, **_: Any) -> dict[str, Any]:
        return {"seeds": seeds, "rounds": [], "tested": [load.name for load in loads]}

    monkeypatch.setattr("homeostat.lab.bench.duel.measure", measure)
    trace = tmp_path / "load.csv"
    trace.write_text("timestamp,value\n" + "".join(f"{60 * n},{50 + n}\n" for n in range(40)), encoding="utf-8")
    options = ("--trace", str(trace), "--seeds", "2", "--faults")
    assert homeostat("bench", "duel", *options, "--keep", str(tmp_path)).code == 0
    text = (tmp_path / "duel.json").read_text(encoding="utf-8")
    kept = json.loads(text)
    assert kept["command"] == "homeostat bench duel --trace load.csv --seeds 2 --faults"
    assert (kept["seeds"], kept["result"]["tested"]) == ({"seeds": 2}, ["load.csv"])
    assert str(tmp_path) not in text


def test_paths_that_lead_out_of_the_directory_are_shortened() -> None:
    short = short_paths([("/one/load.csv", "/other/load.csv", "traces/load.csv", "../load.csv"), 3, None])
    assert short == {"/one/load.csv": "load.csv", "/other/load.csv": "load.csv (2)", "../load.csv": "load.csv (3)"}
    assert without_directories({"/one/load.csv": ["/other/load.csv, 1 h", 2]}, short) == {
        "load.csv": ["load.csv (2), 1 h", 2]
    }
