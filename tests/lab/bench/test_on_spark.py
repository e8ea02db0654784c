"""Each measurement on real Spark in its shortest form: it comes to an end, and every number is there."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from homeostat.lab.bench.twin import HELD_OUT


def measured(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "homeostat.cli.main", "bench", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


@pytest.mark.soak
def test_overhead_with_one_pair() -> None:
    found = measured("overhead", "--pairs", "1", "--batches", "2", "--tasks", "10")
    assert found["throughput_ratio"] > 0
    assert found["batches_seen_by_the_manager"] > 0
    assert found["actions_of_the_manager"] == 0
    assert list(found["disturbed"]["taken_by_others"]) == ["pair 1"]
    assert found["driver_cpu_s_per_batch"]["10"]["with"]["cpu_s"] > 0


@pytest.mark.soak
def test_heal_with_one_run_of_each_kind() -> None:
    found = measured("heal", "--runs", "1", "--factors", "4")
    assert found["slowed"]["4"]["healed"]["of"] == 1
    assert found["false_replacements"]["count"] == 0
    assert found["differences"] == []


@pytest.mark.soak
def test_twin_on_short_runs() -> None:
    found = measured("twin", "--only", "fit", "--scale", "0.5")
    assert found["fitted"]["batches"] > 0
    assert len(found["held_out"]) == len(HELD_OUT)
    assert 0 <= found["coverage"] <= 1
