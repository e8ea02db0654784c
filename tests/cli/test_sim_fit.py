"""`homeostat sim fit`: from a real cluster's event log to a scenario that runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from homeostat.sim.scenario import catalogue
from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]
RECORDED = LOGS / "wordcount.jsonl"


def test_the_scenario_is_printed_and_the_rest_said(homeostat: Homeostat) -> None:
    ran = homeostat("sim", "fit", RECORDED)
    assert ran.code == 0
    scenario = catalogue.loads(ran.out)
    assert [component.name for component in scenario.components] == ["scan", "aggregate"]
    assert "Fitted to 10 batches" in ran.err


def test_a_written_scenario_runs(homeostat: Homeostat, tmp_path: Path) -> None:
    ran = homeostat("sim", "fit", RECORDED, "--out", "fitted.toml")
    assert (ran.code, ran.out) == (0, "")
    assert "homeostat sim run fitted.toml" in ran.err
    assert homeostat("sim", "run", tmp_path / "fitted.toml", "--mode", "observe").code in (0, 3)


def test_json_has_the_promised_keys(homeostat: Homeostat) -> None:
    fitted = homeostat("sim", "fit", RECORDED, "--json").json
    assert list(fitted) == [
        "name",
        "batches",
        "median_error",
        "coverage",
        "microbatch",
        "service_noise",
        "components",
        "workload",
        "notes",
    ]
    assert fitted["microbatch"]["rows_per_trigger"] is None


def test_bad_input_is_one_line(homeostat: Homeostat, tmp_path: Path) -> None:
    for arguments in (["missing"], [tmp_path], [RECORDED, "--out", "nowhere/fitted.toml"]):
        ran = homeostat("sim", "fit", *arguments)
        assert ran.code == 2
        assert len(ran.err.splitlines()) == 1
