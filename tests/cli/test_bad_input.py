"""Whatever a user gets wrong is one clear line and exit code 2, never a traceback."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Homeostat = Callable[..., Any]


def refused(result: Any, *words: str) -> None:
    assert result.code == 2
    assert result.out == ""
    assert "Traceback" not in result.err
    lines = result.err.strip().splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("homeostat: ")
    for word in words:
        assert word in lines[0]


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('engine = "dataflow"', "engine = dataflow", ("small.toml:3", "not valid TOML")),
        ('engine = "dataflow"', 'engin = "dataflow"', ("small.toml",)),
        ('rate = "50 /s"', 'rate = "-50 /s"', ("small.toml:19", "rate", "negative")),
        ('rate = "50 /s"', "rate = 50", ("small.toml:19", "needs a unit")),
        ('inputs = ["lines"]', 'inputs = ["line"]', ("small.toml:17", "lines")),
        ("parallelism = 3", "paralelism = 3", ("small.toml:18", "parallelism")),
        ("parallelism = 3", "parallelism = 0", ("small.toml:18",)),
        ('duration = "20 min"', 'duration = "0 s"', ("small.toml:4", "duration")),
    ],
)
def test_a_wrong_scenario_is_refused_with_its_line(
    homeostat: Homeostat, scenario: Path, old: str, new: str, words: tuple[str, ...]
) -> None:
    right = scenario.read_text()
    assert old in right
    scenario.write_text(right.replace(old, new))
    result = homeostat("sim", "run", scenario)
    assert result.code == 2
    assert "Traceback" not in result.err
    assert any(all(word in line for word in words) for line in result.err.splitlines())


def test_a_fault_on_an_unknown_component_is_refused(homeostat: Homeostat, scenario: Path) -> None:
    scenario.write_text(scenario.read_text() + '\n[[fault]]\nkind = "hot-key"\ncomponent = "cuont"\n')
    refused(homeostat("sim", "run", scenario), "small.toml:23", "cuont", "count")


def with_trace(scenario: Path, rows: str) -> Path:
    head, _, tail = scenario.read_text().partition("[workload]")
    components = tail[tail.index("[[component]]") :]
    scenario.write_text(f'{head}[workload]\nkind = "trace"\nfile = "load.csv"\nvalues = "rate"\n\n{components}')
    (scenario.parent / "load.csv").write_text(rows)
    return scenario


@pytest.mark.parametrize(
    ("rows", "words"),
    [
        ("", ("load.csv", "empty")),
        ("timestamp,value\n", ("load.csv", "two different timestamps")),
        ("timestamp,value\n0,100\n", ("load.csv", "two different timestamps")),
        ("time,load\n0,100\n60,100\n", ("load.csv:1", "timestamp and value", "time, load")),
        ("timestamp,value\n0,100\n60,-5\n", ("load.csv:3", "negative")),
        ("timestamp,value\n0,100\n60,lots\n", ("load.csv:3", "lots")),
        ("timestamp,value\n0,100\nnoon,100\n", ("load.csv:3", "noon")),
    ],
)
def test_a_trace_that_cannot_be_mended_is_refused(
    homeostat: Homeostat, scenario: Path, rows: str, words: tuple[str, ...]
) -> None:
    refused(homeostat("sim", "run", with_trace(scenario, rows)), *words)


def test_a_trace_that_can_be_mended_is_run_and_the_repairs_are_reported(homeostat: Homeostat, scenario: Path) -> None:
    rows = "timestamp,value\n0,90\n120,100\n60,100\n60,110\n180,NaN\n240,100\n2400,100\n"
    result = homeostat("sim", "run", with_trace(scenario, rows), "--policy", "static", "--json")
    assert result.code == 0
    assert result.json["scenario"] == "small"
    for word in ("out of order", "duplicate", "missing", "gap"):
        assert word in result.err


def test_a_missing_trace_is_refused(homeostat: Homeostat, scenario: Path) -> None:
    with_trace(scenario, "")
    (scenario.parent / "load.csv").unlink()
    refused(homeostat("sim", "run", scenario), "load.csv", "does not exist")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("sim", "run", "E77"), ("E77", "E7")),
        (("sim", "run", "nowhere.toml"), ("nowhere.toml", "no such file")),
        (("sim", "run", "."), (".",)),
        (("sim", "run", "E7", "--policy", "provisionning"), ("provisionning", "provisioning")),
        (("sim", "compare", "E7", "--policy", "ds3"), ("ds3", "ds2")),
        (("sim", "run", "E7", "--mode", "regulat"), ("--mode", "regulate")),
        (("sim", "run", "E7", "--set", "guards"), ("--set", "section.key=value")),
        (("sim", "run", "E7", "--set", "guards.largest_chnge=2"), ("largest_change",)),
        (("sim", "run", "E7", "--set", "guard.largest_change=2"), ("guards",)),
        (("sim", "run", "E7", "--seed", "-1"), ("--seed", "sim run --help")),
        (("sim", "run"), ("missing", "sim run --help")),
        (("sim", "rnu"), ("rnu",)),
        (("sim", "compare", "E7", "--picture", "picture.gif"), ("picture.gif", ".png or .svg")),
        (("log",), ("homeostat.sqlite", "no log")),
        (("log", "--store", "missing.sqlite"), ("missing.sqlite", "no log")),
        (("explain", "a-1"), ("homeostat.sqlite", "no log")),
        (("config", "check", "missing.toml"), ("missing.toml", "no such file")),
        (("bench", "control", "--steps", "10"), ("--steps",)),
        (("bench", "noise", "--engine", "spark"), ("spark", "dataflow, microbatch, all")),
        (("--nonsense",), ("--nonsense", "homeostat --help")),
    ],
)
def test_wrong_words_on_the_command_line_are_refused(
    homeostat: Homeostat, arguments: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refused(homeostat(*arguments), *words)


def test_a_file_that_is_not_text_is_refused(homeostat: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "noise.toml").write_bytes(b"\xff\xfe\x00\x01")
    refused(homeostat("sim", "run", "noise.toml"), "noise.toml", "UTF-8")


def test_a_log_that_is_something_else_is_refused(homeostat: Homeostat, tmp_path: Path) -> None:
    (tmp_path / "other.sqlite").write_text("this is not a database, and long enough to be sure of that " * 20)
    refused(homeostat("log", "--store", "other.sqlite"), "other.sqlite: this is not a Homeostat log")


def test_a_directory_is_no_log(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "logs").mkdir()
    refused(homeostat("sim", "run", scenario, "--store", "logs"), "logs: this is a directory")
    refused(homeostat("log", "--store", "logs"), "logs: this is a directory")


def test_a_directory_is_no_trace(homeostat: Homeostat, scenario: Path) -> None:
    with_trace(scenario, "")
    (scenario.parent / "load.csv").unlink()
    (scenario.parent / "load.csv").mkdir()
    refused(homeostat("sim", "run", scenario), "small.toml:8", "'load.csv' is a directory")


def test_static_needs_a_load_to_be_sized_for(homeostat: Homeostat, scenario: Path) -> None:
    result = homeostat("sim", "run", with_trace(scenario, "timestamp,value\n0,0\n3600,0\n"), "--policy", "static")
    refused(result, "the policy static is sized for the peak load, which is 0 rows/s here")


@pytest.mark.slow
def test_a_policy_that_cannot_pursue_the_objective_is_refused(homeostat: Homeostat, scenario: Path) -> None:
    right = scenario.read_text()
    refused(homeostat("sim", "run", scenario, "--policy", "throughput"), "--policy: ", "needs a throughput objective")
    refused(homeostat("sim", "compare", scenario, "--policy", "throughput.paper"), "needs a throughput objective")
    scenario.write_text(right.replace("duration =", 'policy = "throughput"\nduration ='))
    refused(homeostat("sim", "run", scenario), "small.toml:4: ", "needs a throughput objective")
    scenario.write_text(f"{right}\n[objective]\ncost_limit = 10\n")
    refused(homeostat("sim", "run", scenario, "--policy", "ds2"), "small.toml:22: ", "ignores 'cost_limit'")
    compared = homeostat("sim", "compare", scenario, "--json")
    assert compared.code == 0
    assert "provisioning" in [result["policy"] for result in compared.json]
    assert "ds2" not in [result["policy"] for result in compared.json]
