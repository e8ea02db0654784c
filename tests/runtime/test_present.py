"""What a manager leaves of the present for viewers in other processes."""

from __future__ import annotations

from typing import Any

import numpy as np

from homeostat.core.observation import NAN, Observation, TaskSample, WorkerSample
from homeostat.runtime.present import MOST_COLUMNS, MOST_ROWS, matrix


def batch(run_s: list[float], worker: list[int], workers: int = 2, hosts: int = 2) -> Observation:
    nothing = np.full(len(run_s), NAN)
    times = np.array(run_s)
    sample = TaskSample(nothing, times, nothing, nothing, nothing, times, np.array(worker))
    ids = tuple(f"exec-{number}" for number in range(workers))
    return Observation(
        0.0,
        1.0,
        0,
        tasks={"count": sample},
        workers=WorkerSample(ids, tuple(f"host-{n % hosts}" for n in range(workers))),
    )


def shown(*batches: Observation) -> Any:
    return matrix(batches, "count")


def test_a_slow_worker_is_a_row() -> None:
    found = shown(batch([1.0, 3.0, 1.0, 3.0], [0, 1, 0, 1]), batch([3.0, 1.0, 3.0, 1.0], [1, 0, 1, 0]))
    assert found["workers"] == ["exec-0", "exec-1"]
    assert found["cells"] == [[0.5] * 4, [1.5] * 4]


def test_a_hot_key_is_a_column() -> None:
    found = shown(batch([1.0, 4.0, 1.0], [0, 1, 0]), batch([1.0, 4.0, 1.0], [1, 0, 1]))
    assert found["cells"] == [[1.0, 4.0, 1.0], [1.0, 4.0, 1.0]]


def test_what_was_not_measured_is_not_shown() -> None:
    found = shown(batch([1.0, NAN, 1.0], [0, 1, -1]))
    assert found == {"workers": ["exec-0"], "instances": 3, "cells": [[1.0, None, None]]}
    assert shown() is None
    assert shown(batch([], [])) is None


def test_too_many_workers_are_put_together_by_host_and_too_many_instances_in_groups() -> None:
    count = 10 * MOST_COLUMNS
    times = [1.0] * count
    times[5] = 7.0
    found = shown(batch(times, [n % 100 for n in range(count)], workers=100, hosts=4))
    assert found["workers"] == ["host-0", "host-1", "host-2", "host-3"]
    assert {len(row) for row in found["cells"]} == {MOST_COLUMNS}
    assert max(value for row in found["cells"] for value in row) == 7.0
    assert found["cells"][1][0] == 7.0, "a group is as slow as its slowest"
    assert len(found["workers"]) <= MOST_ROWS
