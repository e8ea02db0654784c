"""The matrix of task times that a manager leaves for viewers in other processes."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import NAN, Observation, TaskSample, WorkerSample
from homeostat.runtime.present import MOST_COLUMNS, MOST_ROWS, matrix
from homeostat.store.present import TimeMatrix


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


def matrix_of(*batches: Observation) -> TimeMatrix:
    time_matrix = matrix(batches, "count")
    assert time_matrix is not None
    return time_matrix


def test_a_slow_worker_is_a_row() -> None:
    times = matrix_of(batch([1.0, 3.0, 1.0, 3.0], [0, 1, 0, 1]), batch([3.0, 1.0, 3.0, 1.0], [1, 0, 1, 0]))
    assert times.workers == ("exec-0", "exec-1")
    assert times.cells == ((0.5,) * 4, (1.5,) * 4)


def test_a_hot_key_is_a_column() -> None:
    times = matrix_of(batch([1.0, 4.0, 1.0], [0, 1, 0]), batch([1.0, 4.0, 1.0], [1, 0, 1]))
    assert times.cells == ((1.0, 4.0, 1.0), (1.0, 4.0, 1.0))


def test_what_was_not_measured_is_not_shown() -> None:
    assert matrix_of(batch([1.0, NAN, 1.0], [0, 1, -1])) == TimeMatrix(("exec-0",), 3, ((1.0, None, None),))
    assert matrix((), "count") is None
    assert matrix((batch([], []),), "count") is None


def test_too_many_workers_are_grouped_by_host_and_too_many_instances_in_groups() -> None:
    count = 10 * MOST_COLUMNS
    run_s = [1.0] * count
    run_s[5] = 7.0
    times = matrix_of(batch(run_s, [n % 100 for n in range(count)], workers=100, hosts=4))
    assert times.workers == ("host-0", "host-1", "host-2", "host-3")
    assert {len(row) for row in times.cells} == {MOST_COLUMNS}
    assert max(value for row in times.cells for value in row if value is not None) == 7.0
    assert times.cells[1][0] == 7.0, "a group is as slow as its slowest member"
    assert len(times.workers) <= MOST_ROWS
