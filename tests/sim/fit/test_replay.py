"""Recorded batches, simulated with the rows, tasks and executors that they had."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.recorded_data.run import RecordedBatch, RecordedTasks
from homeostat.sim.fit.replay import replay, replay_parts
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise

LINES = ComponentSpec("lines", "source", parallelism=4, rate_per_s=100.0, task_s=0.0)
ENGINE = MicrobatchSpec(slots=1, driver_s=0.5, commit_s=0.2)


def batch(number: int, rows: float, executors: int, run: str = "a") -> RecordedBatch:
    each = np.full(4, rows / 4)
    names = np.array([f"exec-{task % executors}" for task in range(4)])
    tasks = RecordedTasks(each, each, np.full(4, np.nan), np.zeros(4), np.ones(4), names)
    return RecordedBatch(run, number, 10.0 * number, 2.0, rows, tasks={"lines": tasks})


def test_without_noise_a_batch_takes_its_waves_and_the_driver() -> None:
    """400 rows in four tasks of 1 s: two waves on two executors, one on four."""
    driver_s, tasks_s = replay_parts((LINES,), ENGINE, Noise(), [batch(0, 400, 2), batch(1, 400, 4)], (1,))
    assert driver_s.tolist() == [[pytest.approx(0.7), pytest.approx(0.7)]]
    assert tasks_s.tolist() == [[pytest.approx(2.0), pytest.approx(1.0)]]


def test_the_same_seed_gives_the_same_durations_and_runs_have_noise_of_their_own() -> None:
    batches = [batch(0, 400, 2, "a"), batch(0, 400, 2, "b")]
    first, again = (replay((LINES,), ENGINE, Noise(0.3, 0.5), batches, (1, 2)) for _ in range(2))
    assert first.tolist() == again.tolist()
    assert first.shape == (2, 2)
    assert len(set(first.ravel().tolist())) == 4
