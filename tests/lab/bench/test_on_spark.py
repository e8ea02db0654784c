"""Each measurement on real Spark in its shortest form: it ends, and it finds what must be found."""

from __future__ import annotations

import json
import subprocess
import sys
from typing import Any

import pytest

from homeostat.lab.bench.twin import HELD_OUT

pytestmark = [pytest.mark.spark, pytest.mark.soak]


def measured(*arguments: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "homeostat.cli.main", "bench", *arguments, "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    figures: dict[str, Any] = json.loads(done.stdout)
    return figures


def test_the_manager_costs_the_job_less_than_a_fifth_of_its_throughput() -> None:
    """A single short pair is only this exact; `homeostat bench overhead` with its usual options is much more so."""
    figures = measured("overhead", "--pairs", "1", "--batches", "4", "--tasks", "10")
    assert 0.8 < figures["throughput_ratio"] < 1.25
    assert figures["batches_seen_by_the_manager"] >= 4
    assert figures["actions_of_the_manager"] == 0
    assert list(figures["disturbed"]["taken_by_others"]) == ["pair 1"]
    assert figures["driver_cpu_s_per_batch"]["10"]["with"]["cpu_s"] > 0


def test_on_kafka_the_manager_costs_no_more(kafka_jars: None) -> None:
    pytest.importorskip("confluent_kafka", reason="no Kafka: pip install 'homeostat[kafka]'")
    figures = measured("overhead", "--kafka", "--pairs", "1", "--batches", "4", "--tasks", "10")
    assert figures["source"] == "kafka"
    assert 0.8 < figures["throughput_ratio"] < 1.25
    assert figures["batches_seen_by_the_manager"] >= 4
    assert figures["actions_of_the_manager"] == 0
    assert figures["driver_cpu_s_per_batch"]["10"]["with"]["cpu_s"] > 0


def test_an_executor_that_is_four_times_slower_is_replaced_and_a_healthy_one_is_not() -> None:
    figures = measured("heal", "--runs", "1", "--factors", "4")
    healed = figures["slowed"]["4"]["healed"]
    assert (healed["count"], healed["of"]) == (1, 1)
    assert figures["falsely_replaced"] == []
    assert figures["clean_runs_with_a_replacement"]["count"] == 0
    assert figures["differences"] == []


def test_a_twin_is_fitted_and_compared_with_every_run_held_out() -> None:
    figures = measured("twin", "--only", "fit", "--scale", "0.5")
    assert figures["fitted"]["batches"] > 0
    assert len(figures["held_out"]) == len(HELD_OUT)
    assert 0 <= figures["coverage"] <= 1
