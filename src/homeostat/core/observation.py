"""What an engine measured in one batch, or in one metrics interval of a dataflow. NaN means unknown, never zero."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
NAN = float("nan")
# A key with more rows than this share of an even partition is hot: smaller spreads more keys than help. A choice.
HOT_KEY_PART = 0.5


@dataclass(frozen=True, slots=True)
class FlowSample:
    """One source of one query.

    `rows` were read and processed. `seconds` is how long that took (the batch duration; NaN for a dataflow, which has
    no batches). `arrival_per_s` is what arrived at the source, read or not, and `pending_rows` what waits there.
    """

    source: str
    query: str = "main"
    rows: float = NAN
    seconds: float = NAN
    trigger_s: float = NAN
    arrival_per_s: float = NAN
    pending_rows: float = NAN
    updated_keys: float = NAN
    state_rows: float = NAN
    state_bytes: float = NAN
    watermark_gap_s: float = NAN
    phases_s: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class TaskSample:
    """Columns with one entry per instance of a component.

    `run_s` is useful time (neither waiting for input nor held back), `pending_rows` the instance's own
    queue, `pressured_s` the time in which it held its senders back, `finish_s` when its task ended after
    the stage began. A dataflow has no `finish_s`; a micro-batch has neither queue nor back-pressure.
    `worker` indexes the observation's workers, -1 where unknown.
    """

    rows: Array
    run_s: Array
    rows_out: Array
    pending_rows: Array
    pressured_s: Array
    finish_s: Array
    worker: IntArray

    @property
    def instances(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """Columns with one entry per worker: an executor, or the process of one dataflow instance."""

    ids: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    slots: Array = field(default_factory=lambda: np.empty(0))
    alive: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))


@dataclass(frozen=True, slots=True)
class StateLimits:
    """The settings of a state store: what memory it may use, and when it saves its state.

    `memory_bytes` is for all workers together. A `bounded` store stays within it by itself. A snapshot is due after
    `versions_per_snapshot`, and is uploaded by a maintenance task that runs every `maintenance_s`.
    """

    memory_bytes: float = NAN
    bounded: bool = False
    versions_per_snapshot: float = NAN
    maintenance_s: float = NAN


@dataclass(frozen=True, slots=True)
class StateSample:
    """One stateful operator after one batch: sums over its partitions.

    `version` is the version of the state that the batch made, `snapshot_version` the latest that every partition has
    uploaded whole (-1: none since it was loaded). `loads` counts partitions that were loaded from storage in this
    batch, `replayed` the changelogs they replayed in `replay_s`; `repaired` those whose snapshot was damaged.
    `stall_s` is how long writers waited for the store, `pinned_bytes` memory that it cannot give back.
    """

    operator: str
    backend: str = ""
    partitions: float = NAN
    rows: float = NAN
    updated_rows: float = NAN
    removed_rows: float = NAN
    memory_bytes: float = NAN
    disk_bytes: float = NAN
    pinned_bytes: float = NAN
    commit_s: float = NAN
    stall_s: float = NAN
    loads: float = NAN
    replayed: float = NAN
    replay_s: float = NAN
    repaired: float = NAN
    version: float = NAN
    snapshot_version: float = NAN
    limits: StateLimits = StateLimits()


@dataclass(frozen=True, slots=True)
class Balance:
    """How the keys in the state of a query would fall on other numbers of partitions.

    `imbalance` is the largest partition over the mean, by number of partitions, including the present one. It is empty
    while it is being measured.
    """

    imbalance: Mapping[int, float]


@dataclass(frozen=True, slots=True)
class KeyLoad:
    """The rows of one keyed operator in one batch: all, those of the largest key, and those of the next keys."""

    rows: float
    largest_rows: float
    key: str = ""
    next_rows: tuple[float, ...] = ()

    @property
    def share(self) -> float:
        """The share of the largest key; NaN if it is unknown or there were no rows."""
        return self.largest_rows / self.rows if self.rows > 0 else NAN

    def hot_share(self, partitions: int) -> float:
        """Return the share of the hot keys: the largest, and others that fill `HOT_KEY_PART` of an even partition."""
        hot = sum(rows for rows in self.next_rows if partitions * rows > HOT_KEY_PART * self.rows)
        return (self.largest_rows + hot) / self.rows if self.rows > 0 else NAN


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything measured in one batch or interval that ended at `at_s` and covers `span_s`.

    (`run`, `batch`) is its key: an observation that is delivered twice counts once. `states` is by operator, empty for
    a query without state. `balance` says how its keys would fall on other partitions, if that was measured. `keys` says
    how uneven its rows were, by the scope of the knob that can spread them. `left_out` counts the tasks of a component
    that were not read, because there are too many; their columns hold NaN.
    """

    at_s: float
    span_s: float
    batch: int
    flows: tuple[FlowSample, ...] = ()
    tasks: Mapping[str, TaskSample] = field(default_factory=dict)
    workers: WorkerSample = field(default_factory=WorkerSample)
    run: str = ""
    states: Mapping[str, StateSample] = field(default_factory=dict)
    balance: Balance | None = None
    keys: Mapping[str, KeyLoad] = field(default_factory=dict)
    left_out: Mapping[str, int] = field(default_factory=dict)
