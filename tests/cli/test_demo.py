"""`homeostat demo`, in the simulator and on Spark."""

from __future__ import annotations

import os
import pty
import re
import shlex
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.lab.demonstration import REGULATED, Performance
from homeostat.runtime.launch import LEASE, SUPERVISOR
from homeostat.runtime.lease import Lease
from support.demonstrations import QUIET, SHORT
from support.paths import ROOT

Homeostat = Callable[..., Any]


@pytest.mark.slow
def test_off_a_terminal_it_tells_the_story_in_lines_and_the_default_policy_is_healthy_sooner_and_cheaper(
    homeostat: Homeostat, tmp_path: Path, computed_once: Callable[..., None]
) -> None:
    computed_once("homeostat.sim.simulation.simulate", lambda scenario, policy, **_: (scenario.name, policy.name))
    result = homeostat("demo", "--engine", "sim")
    assert result.code == 0
    assert "\x1b" not in result.out + result.err
    actions = [line for line in result.out.splitlines() if " action " in line]
    for action in ("scale-up", "replace", "scale-down"):
        assert any(action in line for line in actions)
    for kind in ("symptom", "diagnosis", "outcome"):
        assert f" {kind} " in result.out
    table = [line.split() for line in result.out.splitlines()[-4:-1]]
    assert [cells[0] for cells in table] == ["provisioning", "provisioning.paper", "static"]
    assert table[0][1] == "yes"
    assert "out/demo.svg" in result.err
    assert (tmp_path / "out" / "demo.svg").read_text().startswith("<?xml")
    ours, paper, static = homeostat("demo", "--engine", "sim", "--json").json
    assert (ours["policy"], paper["policy"], static["policy"]) == ("provisioning", "provisioning.paper", "static")
    assert ours["converged"]
    assert ours["needless_actions"] == 0
    assert ours["slo_violation_s"] < paper["slo_violation_s"]
    assert ours["instance_seconds"] < paper["instance_seconds"]
    assert not static["converged"]


@pytest.mark.slow
def test_on_a_terminal_it_is_drawn_and_leaves_the_terminal_as_it_was(scenario: Path, tmp_path: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "homeostat.cli.main", "demo", "--engine", "sim"]
    command += ["--scenario", str(scenario), "--speed", "100000"]
    environment = {**os.environ, "TERM": "xterm", "COLUMNS": "100", "LINES": "40"}
    with subprocess.Popen(command, cwd=tmp_path, stdout=theirs, stderr=theirs, env=environment) as running:
        os.close(theirs)
        output = _read_all(ours)
    assert running.returncode == 0
    for words in ("load", "throughput", "backlog", "what Homeostat detects and does", "0:20:00 of 0:20:00", "healthy"):
        assert words in output
    assert "█" in output
    assert output.rindex("\x1b[?25h") > output.rindex("\x1b[?25l")


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


DEMO_STATE = re.compile(r"homeostat state \w+ \.homeostat/demo/")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("--engine", "flink"), "unknown engine 'flink'"),
        (("--scenario", "E1"), "needs --engine sim"),
        (("--speed", "2"), "needs --engine sim"),
        (("--engine", "sim", "--compare"), "needs --engine spark"),
        (("--engine", "sim", "--kafka"), "--kafka: this option needs --engine spark"),
        (("--picture", "demo.gif"), "use .png or .svg"),
    ],
)
def test_what_does_not_fit_is_refused_before_anything_starts(
    homeostat: Homeostat, tmp_path: Path, arguments: tuple[str, ...], words: str
) -> None:
    result = homeostat("demo", *arguments)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert words in result.err
    assert not (tmp_path / ".homeostat").exists()


def test_without_the_client_the_demo_on_kafka_says_how_to_install_it(
    homeostat: Homeostat, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    result = homeostat("demo", "--kafka")
    assert result.code == 2
    assert result.err == ("homeostat: --kafka: confluent-kafka is not installed (pip install 'homeostat[kafka]')\n")
    assert not (tmp_path / ".homeostat").exists()


@pytest.mark.parametrize("lease", [SUPERVISOR, LEASE])
def test_a_demonstration_that_starts_or_runs_is_left_alone(homeostat: Homeostat, tmp_path: Path, lease: str) -> None:
    directory = tmp_path / ".homeostat" / REGULATED.name
    kept = directory / "ledger" / "kept"
    kept.parent.mkdir(parents=True)
    kept.write_text("of the other")
    with Lease(directory / lease):
        result = homeostat("demo", "--json")
    assert (result.code, result.out) == (1, "")
    (line,) = result.err.splitlines()
    assert line == (
        f"homeostat: {directory}: another manager already controls this application (process {os.getpid()}) "
        "(stop it first, or choose another directory)"
    )
    assert kept.read_text() == "of the other"


@pytest.mark.local_spark
@pytest.mark.soak
def test_the_state_that_it_leaves_is_looked_into_and_moved_as_the_readme_says(
    homeostat: Homeostat, tmp_path: Path
) -> None:
    Performance(SHORT, REGULATED, tmp_path / ".homeostat", QUIET).run()
    readme = (ROOT / "README.md").read_text()
    commands = [shlex.split(line, comments=True)[1:] for line in readme.splitlines() if DEMO_STATE.match(line)]
    assert [command[1] for command in commands] == ["ls", "query", "rescale", "rescale"]
    for command in commands:
        result = homeostat(*command)
        assert result.code == 0, result.err
    assert "6 partitions" in homeostat("state", "ls", *commands[0][2:]).out
