"""The program as a whole: help, version, doctor, policies, and what happens when something goes wrong."""

from __future__ import annotations

import doctest
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import homeostat as package
from homeostat.cli import main, status

Homeostat = Callable[..., Any]


PROGRAM = [sys.executable, "-m", "homeostat.cli.main"]


def program(*arguments: str, cwd: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [*PROGRAM, *arguments], cwd=cwd, env={**os.environ, **environment}, capture_output=True, text=True, check=False
    )


def test_version_and_help(homeostat: Homeostat) -> None:
    assert homeostat("--version").out == f"homeostat {package.__version__}\n"
    result = homeostat("--help")
    assert result.code == 0
    for command in ("demo", "sim", "log", "explain", "policies", "config", "bench", "doctor"):
        assert command in result.out


def test_help_needs_nothing_heavy(tmp_path: Path) -> None:
    code = """
import sys
from homeostat.cli.main import run
run(["--help"])
heavy = {"numpy", "matplotlib", "pydantic", "sqlite3"} & set(sys.modules)
sys.exit(f"imported {heavy}" if heavy else 0)
"""
    result = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert result.returncode == 0, result.stderr


@pytest.mark.slow
def test_the_real_program_keeps_data_and_messages_apart(scenario: Path, tmp_path: Path) -> None:
    result = program("sim", "run", str(scenario), "--store", "log.sqlite", "--json", cwd=tmp_path)
    assert result.returncode == 0
    assert result.stdout.startswith("{")
    assert "log.sqlite" in result.stderr
    refused = program("sim", "run", "E77", cwd=tmp_path)
    assert refused.returncode == 2
    assert refused.stdout == ""
    assert refused.stderr.startswith("homeostat: there is no scenario 'E77'")


@pytest.mark.slow
def test_a_reader_that_leaves_early_is_no_error_message(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "sim", "list"], cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.close()
        assert running.stderr.read() == ""


@pytest.mark.slow
def test_an_interrupt_ends_cleanly(tmp_path: Path) -> None:
    with subprocess.Popen(
        [*PROGRAM, "demo", "--engine", "sim", "--scenario", "E4", "--no-live"],
        cwd=tmp_path,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    ) as running:
        assert running.stdout is not None
        assert running.stderr is not None
        running.stdout.readline()
        running.send_signal(signal.SIGINT)
        assert running.wait() == 130
        assert "Traceback" not in running.stderr.read()


def test_the_unforeseen_is_one_line_and_a_traceback_on_request(
    homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch
) -> None:
    def broken(*args: object, **options: object) -> None:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(main, "app", broken)
    result = homeostat("policies")
    assert result.code == 1
    assert result.err.count("\n") == 1
    assert "unexpected ZeroDivisionError: by nought" in result.err
    assert "HOMEOSTAT_DEBUG=1" in result.err
    monkeypatch.setenv("HOMEOSTAT_DEBUG", "1")
    with pytest.raises(ZeroDivisionError):
        main.run(["policies"])


@pytest.mark.parametrize("module", [status])
def test_the_examples_in_the_docstrings_hold(module: ModuleType) -> None:
    tried = doctest.testmod(module)
    assert tried.attempted > 0
    assert tried.failed == 0
