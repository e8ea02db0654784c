"""`homeostat sim`: what a user sees of scenarios, runs and comparisons."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.sim.scenario import catalogue
from support.paths import RECORDED as LOGS

Homeostat = Callable[..., Any]


RUN_KEYS = [
    "scenario",
    "policy",
    "seed",
    "converged",
    "steps",
    "time_to_healthy_s",
    "final_parallelism",
    "trajectory",
    "slo_violation_s",
    "instance_seconds",
    "oracle_instance_seconds",
    "needless_actions",
]


def test_list_names_every_shipped_scenario(homeostat: Homeostat) -> None:
    result = homeostat("sim", "list")
    assert result.code == 0
    assert [line.split()[0] for line in result.out.splitlines()[1:]] == list(catalogue.names())
    listed = homeostat("sim", "list", "--json").json
    assert [entry["name"] for entry in listed] == list(catalogue.names())
    assert {entry["engine"] for entry in listed} == {"dataflow", "microbatch"}
    assert all(entry["title"] for entry in listed)


@pytest.mark.slow
def test_a_run_has_the_promised_json_keys(homeostat: Homeostat, scenario: Path) -> None:
    command_result = homeostat("sim", "run", scenario, "--json")
    assert command_result.code == 0
    result = command_result.json
    assert list(result) == RUN_KEYS
    assert result["scenario"] == "small"
    assert result["policy"] == "provisioning"
    assert result["converged"] is True
    assert result["steps"] == len(result["trajectory"]) >= 1
    first = result["trajectory"][0]
    assert list(first) == ["time_s", "action", "because", "parallelism"]
    assert 300 < first["time_s"] < 600
    assert first["because"] == "under-provisioned at count"
    assert first["parallelism"]["count"] >= 4


@pytest.mark.slow
def test_the_same_seed_is_the_same_run_and_another_is_not(homeostat: Homeostat, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace('kind = "steps"', 'kind = "steps"\nnoise = { sigma = 0.1 }'))
    first = homeostat("sim", "run", scenario, "--seed", 7, "--json")
    assert first.out == homeostat("sim", "run", scenario, "--seed", 7, "--json").out
    other = homeostat("sim", "run", scenario, "--seed", 8, "--json").json
    assert first.json["seed"] == 7
    assert other["seed"] == 8
    assert first.json | {"seed": 8} != other


@pytest.mark.slow
def test_a_run_in_words_shows_the_path_and_the_summary(homeostat: Homeostat, scenario: Path) -> None:
    result = homeostat("sim", "run", scenario)
    assert result.code == 0
    lines = result.out.splitlines()
    assert lines[0] == "small: A word count whose load doubles (policy provisioning, seed 1)"
    assert "start" in lines[2]
    assert "count=3 lines=1" in lines[2]
    assert "scale-up: parallelism.count" in lines[3]
    assert "under-provisioned at count" in lines[3]
    assert "converged               yes" in result.out
    assert "\x1b" not in result.out
    assert result.err == ""


@pytest.mark.slow
def test_a_run_that_only_advises_tells_its_advice(homeostat: Homeostat, scenario: Path) -> None:
    result = homeostat("sim", "run", scenario, "--mode", "advise")
    advice_lines = [line for line in result.out.splitlines() if "advice: Homeostat would scale-up" in line]
    assert advice_lines
    assert advice_lines[0].startswith("0:0")
    assert "because of under-provisioned at count" in " ".join(result.out.split())


@pytest.mark.slow
def test_an_unhealthy_end_is_exit_code_3(
    homeostat: Homeostat, scenario: Path, computed_once: Callable[..., None]
) -> None:
    computed_once("homeostat.sim.simulation.simulate")
    result = homeostat("sim", "run", scenario, "--mode", "observe")
    assert result.code == 3
    assert "converged               no" in result.out
    result = homeostat("sim", "run", scenario, "--mode", "observe", "--json")
    assert result.code == 3
    assert result.json["converged"] is False
    assert result.json["time_to_healthy_s"] is None
    assert result.json["steps"] == 0


@pytest.mark.slow
def test_settings_change_the_run(homeostat: Homeostat, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace("200 /s", "900 /s"))
    wide = homeostat("sim", "run", scenario, "--set", "guards.largest_change=20", "--json").json
    narrow = homeostat("sim", "run", scenario, "--set", "guards.largest_change=2", "--json").json
    assert narrow["trajectory"][0]["parallelism"]["count"] == 6
    assert wide["trajectory"][0]["parallelism"]["count"] >= 18
    assert wide["slo_violation_s"] < narrow["slo_violation_s"]


@pytest.mark.slow
def test_compare_has_a_line_for_each_policy(
    homeostat: Homeostat, scenario: Path, computed_once: Callable[..., None]
) -> None:
    computed_once("homeostat.sim.simulation.simulate", lambda scenario, policy, **_: policy.name)
    policies = ["provisioning", "provisioning.paper", "static"]
    options = [word for policy in policies for word in ("--policy", policy)]
    command_result = homeostat("sim", "compare", scenario, *options)
    assert command_result.code == 0
    assert [line.split()[0] for line in command_result.out.splitlines()[2:-1]] == policies
    assert command_result.out.splitlines()[-1].endswith("at end: count/lines")
    compared = homeostat("sim", "compare", scenario, *options, "--json").json
    assert [result["policy"] for result in compared] == policies
    assert all(list(result) == RUN_KEYS for result in compared)
    assert len({result["oracle_instance_seconds"] for result in compared}) == 1


@pytest.mark.slow
def test_compare_without_policies_runs_all_that_act(homeostat: Homeostat, scenario: Path) -> None:
    scenario.write_text(scenario.read_text().replace("20 min", "8 min"))
    compared = homeostat("sim", "compare", scenario, "--json").json
    policies = [result["policy"] for result in compared]
    assert {"provisioning", "provisioning.paper", "heron", "ds2", "flink", "hpa", "dstream", "static"} <= set(policies)
    assert not {"alert", "throughput", "throughput.paper"} & set(policies)


RECORDED = LOGS / "wordcount.jsonl"


def test_the_scenario_is_printed_and_the_rest_said(homeostat: Homeostat) -> None:
    result = homeostat("sim", "fit", RECORDED)
    assert result.code == 0
    scenario = catalogue.loads(result.out)
    assert [component.name for component in scenario.components] == ["scan", "aggregate"]
    assert "Fitted to 10 batches" in result.err


@pytest.mark.slow
def test_a_written_scenario_runs(homeostat: Homeostat, tmp_path: Path) -> None:
    result = homeostat("sim", "fit", RECORDED, "--out", "fitted.toml")
    assert (result.code, result.out) == (0, "")
    assert "homeostat sim run fitted.toml" in result.err
    assert homeostat("sim", "run", tmp_path / "fitted.toml", "--mode", "observe").code in (0, 3)


@pytest.mark.slow
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


@pytest.mark.slow
def test_bad_input_is_one_line(homeostat: Homeostat, tmp_path: Path) -> None:
    for arguments in (["missing"], [tmp_path], [RECORDED, "--out", "nowhere/fitted.toml"]):
        result = homeostat("sim", "fit", *arguments)
        assert result.code == 2
        assert len(result.err.splitlines()) == 1
