"""`homeostat demo --engine sim`; what is on Spark is in test_cli_demo_spark.py."""

from __future__ import annotations

import os
import pty
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from homeostat.cli.live_display import rates, sparkline
from homeostat.cli.scenario_arguments import load_scenario
from homeostat.sim.truth import TruthSample

Homeostat = Callable[..., Any]


def test_off_a_terminal_it_tells_the_story_in_lines(homeostat: Homeostat, tmp_path: Path) -> None:
    ran = homeostat("demo", "--engine", "sim")
    assert ran.code == 0
    assert "\x1b" not in ran.out + ran.err
    actions = [line for line in ran.out.splitlines() if " action " in line]
    for action in ("scale-up", "replace", "scale-down"):
        assert any(action in line for line in actions)
    for kind in ("symptom", "diagnosis", "outcome"):
        assert f" {kind} " in ran.out
    table = [line.split() for line in ran.out.splitlines()[-4:-1]]
    assert [cells[0] for cells in table] == ["provisioning", "provisioning.paper", "static"]
    assert table[0][1] == "yes"
    assert "out/demo.svg" in ran.err
    assert (tmp_path / "out" / "demo.svg").read_text().startswith("<?xml")


def test_the_default_policy_is_healthy_sooner_and_cheaper_than_the_papers(homeostat: Homeostat) -> None:
    ours, paper, static = homeostat("demo", "--engine", "sim", "--json").json
    assert (ours["policy"], paper["policy"], static["policy"]) == ("provisioning", "provisioning.paper", "static")
    assert ours["converged"]
    assert ours["needless_actions"] == 0
    assert ours["slo_violation_s"] < paper["slo_violation_s"]
    assert ours["instance_seconds"] < paper["instance_seconds"]
    assert not static["converged"]


def test_on_a_terminal_it_is_drawn_and_leaves_the_terminal_as_it_was(scenario: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "homeostat.cli.main", "demo", "--engine", "sim"]
    command += ["--scenario", str(scenario), "--speed", "100000"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        shown = _read_all(ours)
    assert running.returncode == 0
    for words in ("load", "throughput", "backlog", "what Homeostat detects and does", "0:20:00 of 0:20:00", "healthy"):
        assert words in shown
    assert "█" in shown
    assert shown.rindex("\x1b[?25h") > shown.rindex("\x1b[?25l")


def _read_all(descriptor: int) -> str:
    parts = []
    while True:
        try:
            part = os.read(descriptor, 65536)
        except OSError:  # Linux says so when the other end is closed
            break
        if not part:
            break
        parts.append(part)
    os.close(descriptor)
    return b"".join(parts).decode()


def test_a_rate_that_is_to_be_reached_is_drawn_above_the_rate() -> None:
    truth = [TruthSample(10.0, 10.0, 900.0, 800.0, 0.0, False, {}, {})]

    def labels(scenario: str) -> list[str]:
        return [line.split()[0] for line in str(rates(truth, load_scenario(scenario), 60)).splitlines()]

    assert labels("E2") == ["objective", "load", "throughput", "backlog"]
    assert labels("E1") == ["load", "throughput", "backlog"]


def test_a_sparkline_spans_the_whole_run_and_leaves_the_future_blank() -> None:
    assert sparkline([10, 20, 30, 40], [0, 1, 2, 4], 80, 4, 8) == "▁▃▅█    "
    assert sparkline([], [], 80, 0, 4) == "    "
    assert sparkline([80], [0], 80, 0, 4) == "   ▁"
