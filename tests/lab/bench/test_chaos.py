"""`homeostat bench chaos`: which faults there are, and a short run on real Spark."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from homeostat.lab.bench.chaos import FAULTS, Course
from homeostat.lab.chaos.deployment import Deployment
from homeostat.lab.chaos.kinds_of_fault import FaultKind, Injection

SHORT = "executor-killed,store-removed,second-run"


def test_there_are_many_kinds_each_with_a_name_of_its_own() -> None:
    assert len({kind.name for kind in FAULTS}) == len(FAULTS) >= 20


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("--only", "driver-kiled"), "--only: unknown fault 'driver-kiled' (did you mean 'driver-killed'?)"),
        (("--directory", "."), "this directory is not empty"),
    ],
)
def test_wrong_options_are_refused_before_anything_starts(
    homeostat: Callable[..., Any], tmp_path: Path, arguments: tuple[str, ...], complaint: str
) -> None:
    (tmp_path / "file").touch()
    result = homeostat("bench", "chaos", *arguments)
    assert result.code == 2
    assert complaint in result.err


@pytest.mark.spark
@pytest.mark.soak
def test_a_run_that_is_terminated_prints_its_result_so_far(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "homeostat.cli.main", "bench", "chaos", "--json", "--directory", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert process.stderr is not None
    assert "seed 1: 32 kinds of fault for 30 minutes" in process.stderr.readline()
    process.terminate()
    out, _ = process.communicate()
    figures = json.loads(out)
    assert (process.returncode, figures["ended"], figures["injected"]) == (0, "interrupted", 0)
    assert (figures["lost"], figures["doubled"], figures["accepted"]) == (0, 0, False)
    assert figures["leftover_processes"] == []


def test_a_fault_that_is_cut_off_is_noted(waiting_program: Deployment) -> None:
    def interrupt(deployment: Deployment, chance: Random) -> Injection:
        raise KeyboardInterrupt

    course = Course(waiting_program, 1, lambda _: None)
    with pytest.raises(KeyboardInterrupt):
        course.strike(FaultKind("driver-killed", interrupt))
    assert [trial.kind for trial in course.cut_off] == ["driver-killed"]
    assert course.trials == []


def measured(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "homeostat.cli.main", "bench", "chaos", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


@pytest.mark.spark
@pytest.mark.soak
def test_every_kind_of_fault_is_survived_without_harm() -> None:
    figures = measured("--minutes", "60", "--seed", "29", "--faults", str(len(FAULTS)))
    assert figures["failures"] == []
    assert figures["not_injected"] == []
    assert (figures["lost"], figures["doubled"], figures["misplaced"]) == (0, 0, 0)
    assert figures["rows"] > 0
    assert figures["unasked_actions"] == []
    assert figures["leftover_processes"] == []
    assert figures["accepted"]
