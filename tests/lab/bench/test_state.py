"""The measurement of moved state: how its numbers are summed up, and its shortest form on real Spark."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest

from homeostat.lab.bench import state


def test_the_median_of_each_phase_is_reported() -> None:
    pauses = [{"pause": 3.0, "open batch": 1.0}, {"pause": 1.0}, {"pause": 2.0}]
    assert state._middle(pauses) == {"pause_s": 2.0, "open_batch_s": 0.0}


@pytest.mark.spark
@pytest.mark.soak
def test_a_pause_is_measured_by_phase() -> None:
    command = [
        sys.executable,
        "-m",
        "homeostat.cli.main",
        "bench",
        "state",
        "--keys",
        "500",
        "--repeats",
        "1",
        "--json",
    ]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)["keys"]["500"]
    verified, not_verified = figures["rescale"]["verified"], figures["rescale"]["not_verified"]
    assert {"savepoint_s", "repartition_s", "verify_s", "start_s"} <= set(verified)
    assert "verify_s" not in not_verified
    for measured in (verified, not_verified):
        assert measured["pause_s"] > measured["repartition_s"] > 0
    assert min(*figures["restart_s"].values(), *figures["savepoint_s"].values()) > 0
    assert figures["state_bytes"] > 0
