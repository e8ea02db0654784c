"""A recorded run as plain values. `sim.fit` makes a scenario of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from math import inf

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import NAN, Array


@dataclass(frozen=True, slots=True)
class RecordedTasks:
    """Columns with one entry per task of one component in one batch. Times are seconds since the epoch."""

    rows: Array
    rows_out: Array
    keys: Array
    start_s: Array
    finish_s: Array
    executor: NDArray[np.str_]

    @property
    def seconds(self) -> Array:
        """How long each task occupied its slot."""
        return self.finish_s - self.start_s

    @property
    def executors(self) -> int:
        """How many executors ran at least one of the tasks."""
        return len(set(self.executor.tolist()))

    @property
    def busy(self) -> Array:
        """For each task, how many executors ran one of these tasks at the same time, averaged over its duration."""
        names, mine = np.unique(self.executor, return_inverse=True)
        start_s, finish_s = self.start_s[:, None], self.finish_s[:, None]
        both_s = np.minimum(finish_s, self.finish_s) - np.maximum(start_s, self.start_s)
        of_its_time = np.clip(both_s, 0.0, None) / np.maximum(self.seconds, 1e-3)[:, None]
        by_executor = of_its_time @ np.eye(len(names))[mine]
        busy: Array = np.minimum(1.0, by_executor).sum(axis=1)
        return np.maximum(1.0, busy)


@dataclass(frozen=True, slots=True)
class RecordedSource:
    """The rows that a batch took from one source, and those that had arrived there when the batch began."""

    rows: float
    arrived_rows: float = NAN


@dataclass(frozen=True, slots=True)
class RecordedBatch:
    """`arrived_rows`: all rows that had arrived at the sources when it began. `pending_rows`: those that it left there.
    `sources` has one entry for each source of the run."""

    run: str
    number: int
    started_s: float
    seconds: float
    rows: float
    commit_s: float = NAN
    arrived_rows: float = NAN
    pending_rows: float = NAN
    state_rows: float = NAN
    tasks: Mapping[str, RecordedTasks] = field(default_factory=dict)
    sources: tuple[RecordedSource, ...] = ()

    @property
    def ended_s(self) -> float:
        return self.started_s + self.seconds


@dataclass(frozen=True, slots=True)
class RecordedExecutor:
    id: str
    host: str
    slots: int
    added_s: float
    removed_s: float = inf


@dataclass(frozen=True, slots=True)
class RecordedComponent:
    name: str
    inputs: tuple[str, ...] = ()
    keyed: bool = False
    stateful: bool = False


@dataclass(frozen=True, slots=True)
class RecordedRun:
    """One query of one application. `driver_up_s`: when the application began to request executors. `sources`: the
    component that reads each source."""

    application: str
    query: str
    components: tuple[RecordedComponent, ...]
    batches: tuple[RecordedBatch, ...]
    executors: tuple[RecordedExecutor, ...]
    driver_up_s: float = NAN
    locality_wait_s: float = 3.0
    notes: tuple[str, ...] = ()
    sources: tuple[str, ...] = ()
