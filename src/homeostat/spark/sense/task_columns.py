"""Tasks and executors as the columns of an observation. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

import numpy as np

from homeostat.core.observation import NAN, Array, TaskSample, WorkerSample
from homeostat.spark.sense.rest_answers import Executor
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.task_costs import task_costs

MEMORY_FRACTION = 0.6  # Spark's default of spark.memory.fraction


def worker_sample(
    executors: Iterable[Executor], leaving: Collection[str] = (), memory_fraction: float = MEMORY_FRACTION
) -> WorkerSample:
    """The executors that are alive, have slots and are not `leaving`. The driver has slots only in local mode."""
    working = (each for each in executors if each.alive and each.slots > 0 and each.id not in leaving)
    alive = sorted(working, key=lambda executor: (len(executor.id), executor.id))
    return WorkerSample(
        ids=tuple(executor.id for executor in alive),
        hosts=tuple(executor.host for executor in alive),
        slots=np.array([float(executor.slots) for executor in alive]),
        alive=np.ones(len(alive), dtype=np.bool_),
        heap_bytes=np.array([executor.heap_bytes for executor in alive]),
        heap_limit_bytes=np.array([executor.heap_limit_bytes(memory_fraction) for executor in alive]),
    )


def task_sample(runs: Sequence[StageRun], workers: WorkerSample, batch_began_s: float = NAN) -> TaskSample:
    """One component in one batch, which began at `batch_began_s` by the driver's clock. If it ran several times (the
    sink writes twice), the runs are added up."""
    index = {identity: number for number, identity in enumerate(workers.ids)}
    samples = [_sample(run, index) for run in runs]
    size = max(sample.instances for sample in samples)
    unknown = np.full(size, NAN)
    longest = max(samples, key=lambda sample: float(np.nansum(sample.run_s)))
    worker = np.full(size, -1, dtype=np.int64)
    worker[: longest.instances] = longest.worker
    return TaskSample(
        rows=_sum([sample.rows for sample in samples], size),
        run_s=_sum([sample.run_s for sample in samples], size),
        rows_out=_sum([sample.rows_out for sample in samples], size),
        pending_rows=unknown,
        pressured_s=unknown,
        finish_s=_sum([sample.finish_s for sample in samples], size),
        worker=worker,
        costs=task_costs(runs, size),
        began_s=min(run.began_s for run in runs) - batch_began_s,
        ended_s=max(run.ended_s for run in runs) - batch_began_s,
    )


def _sample(run: StageRun, index: Mapping[str, int]) -> TaskSample:
    rows, run_s, rows_out, finish_s = (np.full(run.partitions, NAN) for _ in range(4))
    worker = np.full(run.partitions, -1, dtype=np.int64)
    first_s = min((task.launched_s for task in run.tasks), default=NAN)
    shuffled_in = any(task.rows_shuffled_in for task in run.tasks)
    shuffled_out = run.feeds or any(task.rows_shuffled_out for task in run.tasks)
    writes_rows = any(task.rows_written for task in run.tasks)
    for task in run.tasks:
        if task.index < run.partitions:
            rows[task.index] = task.rows_shuffled_in if shuffled_in else task.rows_read
            run_s[task.index] = task.run_s
            # Many sinks do not report how many rows they wrote.
            rows_out[task.index] = task.rows_shuffled_out if shuffled_out else task.rows_written if writes_rows else NAN
            finish_s[task.index] = task.ended_s - first_s
            worker[task.index] = index.get(task.executor, -1)
    unknown = np.full(run.partitions, NAN)
    return TaskSample(rows, run_s, rows_out, unknown, unknown, finish_s, worker)


def _sum(columns: Sequence[Array], size: int) -> Array:
    """Entry by entry. An entry is NaN only if it is NaN in all columns."""
    table = np.full((len(columns), size), NAN)
    for line, column in zip(table, columns, strict=True):
        line[: len(column)] = column
    finite = np.isfinite(table)
    sums: Array = np.where(finite.any(axis=0), np.where(finite, table, 0.0).sum(axis=0), NAN)
    return sums
