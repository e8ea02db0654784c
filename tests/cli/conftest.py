"""Run the program as a user does, in this process: exit code, stdout, stderr."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from homeostat.cli.main import run


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Homeostat = Callable[..., Ran]


@pytest.fixture
def homeostat(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homeostat:
    """In an empty working directory, so that nothing is found or left anywhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOMEOSTAT_STORE", raising=False)
    monkeypatch.delenv("HOMEOSTAT_DEBUG", raising=False)

    def call(*arguments: object) -> Ran:
        code = run([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return call


SCENARIO = """\
name = "small"
title = "A word count whose load doubles"
engine = "dataflow"
duration = "20 min"

[workload]
kind = "steps"
steps = [{ at = "0 s", rate = "100 /s" }, { at = "5 min", rate = "200 /s" }]

[[component]]
name = "lines"
kind = "source"
rate = "1 k/s"

[[component]]
name = "count"
inputs = ["lines"]
parallelism = 3
rate = "50 /s"
"""


@pytest.fixture(scope="session")
def scenario_text() -> str:
    return SCENARIO


@pytest.fixture
def scenario(tmp_path: Path) -> Path:
    """A small scenario: at 5 min three counters are too few and four are just enough."""
    path = tmp_path / "small.toml"
    path.write_text(SCENARIO)
    return path
