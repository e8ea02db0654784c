"""A small scenario for the commands that run one."""

from __future__ import annotations

from pathlib import Path

import pytest

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
