"""The time that faults add to each task of a stage, by kind."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from math import ceil, isfinite

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.microbatch.disturbances import LISTING_PART, NO_BURDEN, Disturbance, TaskBurden, gc_share
from homeostat.sim.microbatch.stages import Work
from homeostat.sim.scenario.spec import ComponentSpec

# A query stops when one task has failed this often: spark.task.maxFailures.
MAX_FAILURES = 4
FAILURE_REASON = "java.io.IOException: Connection reset by peer"
POISON_REASON = "org.apache.spark.SparkNumberFormatException: [CAST_INVALID_INPUT] The value 'x' cannot be cast"
# A row that a join creates costs this share of the time of a row that it reads. A choice.
MATCH_COST = 0.5
# Serialising a result takes the task this share of the time in which the driver reads it. A choice.
SERIALISING_PART = 0.2
# An attempt that fails does so half-way, on average.
HALF_WAY = 0.5


@dataclass(frozen=True)
class Burden:
    """Columns with one entry per task. `work_s` and `gc_s` take longer on a slow executor, the other times do not.

    `wait_s` is spent on something outside, `store_s` on the state store. `rows_out_factor` is how many times more rows
    a task sends on. `fatal` is the number of a task that fails for good, or None.
    """

    work_s: Array
    gc_s: Array
    wait_s: Array
    store_s: Array
    spill_s: Array
    fetch_wait_s: Array
    serialise_s: Array
    failed_s: Array
    failures: Array
    spilled_rows: Array
    heap_use: Array
    rows_out_factor: Array
    fatal: int | None = None
    failure_reason: str = ""
    files: float = 0.0
    dispatch_s: float = 0.0

    @cached_property
    def fixed_s(self) -> Array:
        """The time of each task that is the same on every executor."""
        return self.inner_s + self.outer_s

    @cached_property
    def inner_s(self) -> Array:
        """The part of `fixed_s` in which a task counts as running."""
        total: Array = self.wait_s + self.store_s + self.spill_s
        return total

    @cached_property
    def outer_s(self) -> Array:
        total: Array = self.fetch_wait_s + self.serialise_s + self.failed_s
        return total


def stage_burden(
    spec: ComponentSpec,
    work: Work,
    noise: Array | float,
    now: Disturbance,
    *,
    slots: int,
    executors: int,
    rng: np.random.Generator | None = None,
) -> Burden | None:
    """The burden of the tasks of this stage; None if there is none. Without `rng`, every task has the mean number of
    failed attempts."""
    burden = now.burden(spec.name)
    if burden == NO_BURDEN and now.dispatch_s == 0 and now.collect_row_s == 0:
        return None
    rows, tasks = work.rows, len(work.rows)
    row_s = noise * (rows / spec.rate_per_s + spec.key_s * work.keys)
    work_s, rows_out_factor = _more_work(burden, row_s, spec.selectivity * noise * rows / spec.rate_per_s)
    heap_use = _heap_use(burden, rows, min(slots, ceil(tasks / max(1, executors))))
    gc_s = (work.seconds + work_s) * np.array([gc_share(use) for use in heap_use.tolist()])
    files = np.ceil(rows / burden.file_rows) if isfinite(burden.file_rows) else np.zeros(tasks)
    wait_s = _wait_s(burden, rows, files)
    stored_rows = work.keys if burden.stores_changes else np.full(tasks, burden.state_growth * spec.keys / tasks)
    store_s = burden.store_s + burden.store_row_s * stored_rows
    spilled_rows = np.maximum(0.0, rows - burden.spill_rows)
    spill_s = burden.spill_row_s * spilled_rows
    # Blocks of the executor itself need no network.
    fetch_wait_s = burden.fetch_row_s * rows * (1.0 - 1.0 / max(1, executors))
    whole_s = work.seconds + work_s + gc_s + wait_s + store_s + spill_s + fetch_wait_s
    failures = _failures(burden, tasks, rng)
    return Burden(
        work_s=work_s,
        gc_s=gc_s,
        wait_s=wait_s,
        store_s=store_s,
        spill_s=spill_s,
        fetch_wait_s=fetch_wait_s,
        serialise_s=SERIALISING_PART * now.collect_row_s * spec.rows_out(rows),
        failed_s=HALF_WAY * whole_s * failures,
        failures=failures,
        spilled_rows=spilled_rows,
        heap_use=heap_use,
        rows_out_factor=rows_out_factor,
        fatal=int(np.argmax(failures)) if failures.max() >= MAX_FAILURES and rng is not None else None,
        failure_reason=POISON_REASON if burden.poisoned else FAILURE_REASON,
        files=float(files.sum()),
        dispatch_s=now.dispatch_s,
    )


def _heap_use(burden: TaskBurden, rows: Array, at_once: int) -> Array:
    """The share of the heap that a task and its neighbours on the same executor fill."""
    shares: Array = ((at_once - 1) * rows.mean() + rows) / burden.heap_rows
    return shares


def _wait_s(burden: TaskBurden, rows: Array, files: Array) -> Array:
    wait_s: Array = burden.wait_s + burden.row_wait_s * rows + burden.file_s * files
    for partition, seconds in burden.hanging:
        wait_s[partition % len(rows)] += seconds
    return wait_s


def driver_delays_s(now: Disturbance, driver_s: float, taken_rows: Mapping[str, int]) -> dict[str, float]:
    """The time that the faults add to the driver's phases before the first stage, under Spark's names."""
    listed_s = 0.0
    for source, rows in taken_rows.items():
        burden = now.burden(source)
        listed_s += LISTING_PART * burden.file_s * ceil(rows / burden.file_rows)
    delays_s = {
        "latestOffset": now.source_s + listed_s,
        "queryPlanning": now.planning_s + now.driver_gc * driver_s,
        "walCommit": now.wal_s,
    }
    return {phase: seconds for phase, seconds in delays_s.items() if seconds > 0}


def collect_s(now: Disturbance, rows_out: float) -> float:
    """How long the driver takes to read the results of the last stage."""
    return now.collect_row_s * rows_out * (1.0 + now.driver_gc)


def sink_s(now: Disturbance, rows_out: float) -> float:
    return now.sink_s + now.sink_row_s * rows_out


def _more_work(burden: TaskBurden, row_s: Array, match_s: Array) -> tuple[Array, Array]:
    work_s = (burden.row_factor - 1.0) * row_s
    rows_out_factor = np.ones(len(row_s))
    for partition, factor in burden.costly:
        task = partition % len(row_s)
        work_s[task] += (factor - 1.0) * burden.row_factor * row_s[task]
    for partition, factor in burden.exploding:
        task = partition % len(row_s)
        work_s[task] += MATCH_COST * (factor - 1.0) * match_s[task]
        rows_out_factor[task] *= factor
    return work_s, rows_out_factor


def _failures(burden: TaskBurden, tasks: int, rng: np.random.Generator | None) -> Array:
    """How many attempts at each task fail."""
    share = burden.failing_share
    failures = np.zeros(tasks)
    if share > 0 and rng is None:
        failures += min(MAX_FAILURES, share / (1.0 - min(share, 0.99)))
    elif share > 0 and rng is not None:
        failures += np.cumprod(rng.random((MAX_FAILURES, tasks)) < share, axis=0).sum(axis=0)
    for partition, attempts in burden.poisoned:
        failures[partition % tasks] = max(failures[partition % tasks], min(attempts, MAX_FAILURES))
    return failures
