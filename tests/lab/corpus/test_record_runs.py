"""Two short runs on real Spark: their logs, their labels, and what a second recording leaves alone."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from homeostat.lab.corpus.labels import read_labels
from homeostat.lab.corpus.shrinking import kept_events
from homeostat.spark.outside import event_log
from homeostat.spark.outside.logged_run import record


@pytest.mark.spark
@pytest.mark.soak
def test_a_clean_run_and_one_with_a_slow_service_are_recorded(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "homeostat.cli.main", "corpus", "record", "--out", str(tmp_path / "corpus")]
    options = ["--only", "service-clean,service-slow-service", "--runs", "1", "--seconds", "24", "--json"]
    done = subprocess.run([*command, *options], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    clean, slow = labels = read_labels(tmp_path / "corpus")
    assert json.loads(json.dumps([label.as_json() for label in labels])) == json.loads(done.stdout)
    assert (clean.run, clean.clean, clean.executors) == ("service-clean-1", True, 3)
    (fault,) = slow.faults
    assert (fault.cause, fault.component, fault.measure) == ("external-bound", "scan", "batch time")
    assert fault.before_s > 0
    assert fault.during_s > 0
    assert slow.began_s <= fault.at_s < fault.until_s <= slow.ended_s
    for label in labels:
        log = tmp_path / "corpus" / label.log
        run = record(log)
        assert run.query == label.run
        assert len(run.batches) == label.batches > 5
        assert {part.name for part in run.components} == {"scan"}
        starts = [event for event in kept_events(log) if event["Event"] == event_log.QUERY_STARTED]
        assert [event["name"] for event in starts] == [label.run]
