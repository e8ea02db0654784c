"""Small scenarios and a checkpoint for the commands that need one."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

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


BATCHES = """\
name = "batches"
title = "A word count in micro-batches"
engine = "microbatch"
duration = "10 min"

[microbatch]
trigger = "10 s"
executors = 4
max_executors = 30

[workload]
kind = "constant"
rate = "1000 /s"
noise = { sigma = 0.05 }

[[component]]
name = "lines"
kind = "source"
parallelism = 24
rate = "5 k/s"

[[component]]
name = "count"
inputs = ["lines"]
parallelism = 24
rate = "500 /s"
"""


@pytest.fixture
def computed_once(monkeypatch: pytest.MonkeyPatch) -> Callable[..., None]:
    """`computed_once("module.function")`: the second call gets the result of the first, for a test that runs a command
    twice to see its table and its JSON. With `key`, each value of that function of the arguments is computed once."""

    def replace(path: str, key: Callable[..., object] = lambda *arguments, **options: None) -> None:
        compute = pkgutil.resolve_name(path)
        results: dict[object, object] = {}

        def remembered(*arguments: Any, **options: Any) -> object:
            this = key(*arguments, **options)
            if this not in results:
                results[this] = compute(*arguments, **options)
            return results[this]

        monkeypatch.setattr(path, remembered)

    return replace


@pytest.fixture
def batches(tmp_path: Path) -> Path:
    """A scenario in micro-batches, with executors to change."""
    path = tmp_path / "batches.toml"
    path.write_text(BATCHES, encoding="utf-8")
    return path


@pytest.fixture
def fresh(tmp_path: Path) -> Path:
    """The checkpoint of a query that has just been started: no batch is committed, and there is no state."""
    path = tmp_path / "fresh"
    (path / "offsets").mkdir(parents=True)
    (path / "metadata").write_text('{"id":"8b9c5f4e-0000-4000-8000-000000000000"}')
    (path / "offsets" / "0").write_text('v1\n{"batchWatermarkMs":0,"batchTimestampMs":0,"conf":{}}\n0')
    return path
