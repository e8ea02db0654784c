"""The measurements of a batch other than its times: costs of tasks, state, memory, driver, hosts, failures and losses.

The numbers vary by a separate random stream, so that measuring them does not change the run.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from math import ceil, isfinite

import numpy as np

from homeostat.core.observation import (
    NAN,
    DriverSample,
    FileSample,
    FlowSample,
    HostSample,
    Observation,
    StateLimits,
    StateSample,
    TaskFailure,
    TaskSample,
    WorkerLoss,
)
from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.batches import Batch, Stage
from homeostat.sim.microbatch.disturbances import RETENTION_S, Disturbance
from homeostat.sim.microbatch.executors import Executor
from homeostat.sim.microbatch.task_costs import MEMORY_ROW_BYTES, ROW_BYTES, task_costs
from homeostat.sim.random_streams import stream
from homeostat.sim.scenario.spec import MicrobatchSpec

# Simulated time starts at this moment, in seconds since the epoch.
EPOCH_S = 1_750_000_000.0
# The latest row of a batch is this old when it arrives, and the watermark waits for rows that are this late. Choices.
EVENT_DELAY_S, WATERMARK_DELAY_S = 0.5, 10.0
# The heaps of an executor and of the driver, and the share of each that is in use without a fault.
HEAP_BYTES, DRIVER_HEAP_BYTES = 2.0 * 2**30, 1.0 * 2**30
HEAP_USE, DRIVER_HEAP_USE = 0.45, 0.3
# The share of its time that a healthy driver spends on garbage collection, and the share of a host that other processes
# use.
DRIVER_GC, OTHERS = 0.01, 0.01
# A healthy state store takes these parts of a task's time to read and write, to remove, and to commit.
UPDATE_PART, REMOVE_PART, COMMIT_PART = 0.3, 0.03, 0.08
# spark.sql.streaming.stateStore.minDeltasForSnapshot.
VERSIONS_PER_SNAPSHOT = 10
# How far these values vary: the standard deviation of their logarithm.
SIGMA = 0.05


class Measures:
    """The sensors of one simulated application."""

    def __init__(self, engine: MicrobatchSpec, faults: Faults, seed: int) -> None:
        self._slots, self._faults = engine.slots, faults
        self._rng = stream(seed, "costs")

    def complete(
        self,
        sample: Observation,
        batch: Batch,
        now: Disturbance,
        executors: Sequence[Executor],
        *,
        failures: Sequence[TaskFailure] = (),
        losses: Sequence[WorkerLoss] = (),
    ) -> Observation:
        """Add the measurements to an observation. `executors` are its workers, in the same order."""
        noise = np.exp(SIGMA * self._rng.standard_normal(4 + len(executors))).tolist()
        tasks = self._tasks(sample, batch, now, executors)
        heap_use = np.minimum(0.99, HEAP_USE * np.array(noise[4:]) + _heap_use(batch))
        heap_bytes = DRIVER_HEAP_BYTES * max(DRIVER_HEAP_USE * noise[0], now.driver_heap) + _collected_bytes(batch, now)
        driver = DriverSample(
            min(heap_bytes, 0.99 * DRIVER_HEAP_BYTES),
            DRIVER_HEAP_BYTES,
            DRIVER_GC * batch.driver_s * noise[1] + now.driver_gc * batch.driver_s,
        )
        states = {
            stage.spec.name: _state(stage, now, sample, noise[2]) for stage in batch.stages if stage.homes is not None
        }
        return replace(
            sample,
            flows=tuple(_flow(flow, sample.at_s, now, batch, states) for flow in sample.flows),
            tasks=tasks,
            workers=replace(
                sample.workers,
                heap_bytes=HEAP_BYTES * heap_use,
                heap_limit_bytes=np.full(len(executors), HEAP_BYTES),
            ),
            states=states,
            failures=tuple(failures),
            losses=tuple(losses),
            other_jobs=batch.other_jobs,
            driver=driver,
            hosts=self._hosts(sample, tasks, executors, batch, noise[3]),
            files=_files(batch, now),
        )

    def _tasks(
        self, sample: Observation, batch: Batch, now: Disturbance, executors: Sequence[Executor]
    ) -> dict[str, TaskSample]:
        cpu_left = {each.number: now.cpu_share(each.host) for each in executors} if now.contention else {}
        return {
            stage.spec.name: replace(
                sample.tasks[stage.spec.name],
                costs=task_costs(stage, cpu_left, self._rng),
                began_s=stage.started_s - batch.started_s,
                ended_s=stage.end_s - batch.started_s,
            )
            for stage in batch.stages
        }

    def _hosts(
        self,
        sample: Observation,
        tasks: dict[str, TaskSample],
        executors: Sequence[Executor],
        batch: Batch,
        noise: float,
    ) -> tuple[HostSample, ...]:
        """A host has as many cores as its executors have slots."""
        seconds = sample.at_s - batch.started_s
        cpu_s = np.zeros(len(executors) + 1)
        for task in tasks.values():
            if task.costs is not None:
                np.add.at(cpu_s, task.worker, task.costs.cpu_s)
        by_host: dict[str, list[int]] = {}
        for index, executor in enumerate(executors):
            by_host.setdefault(executor.host, []).append(index)
        samples = []
        for host, indices in sorted(by_host.items()):
            cores = float(len(indices) * self._slots)
            others = max(OTHERS * noise, 1.0 - self._faults.cpu_left(host, batch.started_s))
            own = float(cpu_s[indices].sum()) / (cores * seconds) if seconds > 0 else NAN
            samples.append(HostSample(host, cores, min(1.0, own + others), others))
        return tuple(samples)


def _heap_use(batch: Batch) -> float:
    """The share of a heap that the rows of the largest tasks take, if a fault makes the heap small."""
    return max((float(s.burden.heap_use.max()) for s in batch.stages if s.burden is not None), default=0.0)


def _collected_bytes(batch: Batch, now: Disturbance) -> float:
    """The bytes of the results that the driver holds."""
    if now.collect_row_s == 0:
        return 0.0
    return MEMORY_ROW_BYTES * sum(float(stage.rows_out.sum()) for stage in batch.stages if stage.is_sink)


def _flow(flow: FlowSample, at_s: float, now: Disturbance, batch: Batch, states: dict[str, StateSample]) -> FlowSample:
    if not states:
        return flow
    event_time_s = EPOCH_S + batch.started_s - EVENT_DELAY_S
    watermark_s = EPOCH_S + min(batch.started_s, now.watermark_stalled_s) - EVENT_DELAY_S - WATERMARK_DELAY_S
    return replace(
        flow,
        event_time_s=event_time_s,
        watermark_s=watermark_s,
        watermark_gap_s=EPOCH_S + at_s - watermark_s,
        state_rows=sum(state.rows for state in states.values()),
        state_bytes=sum(state.memory_bytes for state in states.values()),
    )


def _state(stage: Stage, now: Disturbance, sample: Observation, noise: float) -> StateSample:
    spec, burden = stage.spec, now.burden(stage.spec.name)
    rows = float(round(spec.keys * burden.state_growth))
    updated_rows = float(stage.work.keys.sum())
    running_s = float(stage.run_s.sum())
    stalled, version = isfinite(now.watermark_stalled_s), sample.batch + 1
    store_s = float(stage.burden.store_s.sum()) if stage.burden is not None else 0.0
    return StateSample(
        operator=spec.name,
        backend="rocksdb",
        partitions=float(len(stage.work.rows)),
        rows=rows,
        updated_rows=updated_rows,
        removed_rows=0.0 if stalled else float(round(min(updated_rows, spec.keys * sample.span_s / RETENTION_S))),
        memory_bytes=MEMORY_ROW_BYTES * rows,
        disk_bytes=ROW_BYTES * rows,
        commit_s=COMMIT_PART * (running_s - store_s) * noise + store_s,
        update_s=UPDATE_PART * (running_s - store_s) * noise,
        remove_s=0.0 if stalled else REMOVE_PART * (running_s - store_s) * noise,
        late_rows=float(round(burden.late_share * stage.work.rows.sum())),
        stall_s=0.0,
        loads=0.0,
        replayed=0.0,
        replay_s=0.0,
        repaired=0.0,
        version=float(version),
        snapshot_version=float(version - version % VERSIONS_PER_SNAPSHOT),
        limits=StateLimits(versions_per_snapshot=VERSIONS_PER_SNAPSHOT, maintenance_s=60.0),
    )


def _files(batch: Batch, now: Disturbance) -> FileSample:
    """The files that the batch read: none unless the source reads files."""
    read, read_rows = 0.0, 0.0
    for source, rows in batch.taken_rows.items():
        file_rows = now.burden(source).file_rows
        if isfinite(file_rows):
            read += ceil(rows / file_rows)
            read_rows += rows
    return FileSample(read, ROW_BYTES * read_rows) if read else FileSample()
