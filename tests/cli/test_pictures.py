"""Pictures of runs."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from homeostat.cli import pictures, scenario_arguments
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import simulate

Homeostat = Callable[..., Any]


@pytest.mark.slow
def test_compare_draws_a_picture(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    options = ("--policy", "provisioning", "--policy", "static", "--picture")
    result = homeostat("sim", "compare", scenario, *options, tmp_path / "new" / "runs.svg")
    assert result.code == 0
    assert "runs.svg" in result.err
    drawn = (tmp_path / "new" / "runs.svg").read_text()
    for word in ("provisioning: healthy at the end", "static: ", "throughput", "needed", "instances", "minutes"):
        assert word in drawn


@pytest.mark.slow
def test_a_picture_of_the_same_run_is_the_same_file(scenario: Path, tmp_path: Path) -> None:
    loaded = catalogue.load(scenario)
    result = simulate(loaded, scenario_arguments.policy_for(loaded, "static"))
    for name in ("one.svg", "two.svg", "three.png"):
        pictures.compare([result], tmp_path / name, "Static")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "three.png").read_bytes().startswith(b"\x89PNG")


def test_a_picture_that_cannot_be_written_is_one_line(homeostat: Homeostat, scenario: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    result = homeostat("sim", "compare", scenario, "--policy", "static", "--picture", tmp_path / "file" / "runs.svg")
    assert result.code == 1
    assert result.err.startswith("homeostat: ")
    assert "cannot write the picture" in result.err
