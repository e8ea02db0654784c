"""What an engine measured in one batch, or in one metrics interval of a dataflow. NaN means unknown, never zero."""

from __future__ import annotations

import math
from collections.abc import Callable, Hashable, Iterable, Mapping
from dataclasses import dataclass, field, fields
from typing import TypeVar, cast

import numpy as np
from numpy.typing import NDArray

from homeostat.core.batch_intervals import intervals
from homeostat.core.source_sample import SourceSample

Array = NDArray[np.float64]
IntArray = NDArray[np.int64]
NAN = float("nan")
_Result = TypeVar("_Result")
# A key with more rows than this share of an even partition is hot: smaller spreads more keys than help. A choice.
HOT_KEY_PART = 0.5


@dataclass(frozen=True, slots=True)
class FlowSample:
    """One source of one query.

    `rows` were read and processed. `seconds` is how long that took (the batch duration; NaN for a dataflow, which has
    no batches). `arrival_per_s` is what arrived at the source, read or not, and `pending_rows` what waits there.
    Where it is estimated, because offsets are not all rows, at most `pending_at_most` rows wait; otherwise that is NaN.
    `event_time_s` is the latest event time among the rows, and `watermark_s` the watermark, both since the epoch.
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
    event_time_s: float = NAN
    watermark_s: float = NAN
    phases_s: Mapping[str, float] = field(default_factory=dict)
    pending_at_most: float = NAN


def total_at_most(parts: Iterable[tuple[float, float]]) -> float:
    """The most rows that may wait at several sources, from what waits and at most waits at each; NaN if no part is an
    estimate."""
    parts = list(parts)
    if all(math.isnan(most) for _, most in parts):
        return NAN
    return sum(pending if math.isnan(most) else most for pending, most in parts)


@dataclass(frozen=True, slots=True)
class TaskCosts:
    """What tasks spent their time on, and what they moved. Columns with one entry per instance; NaN where unknown.

    `cpu_s`, `gc_s` and `shuffle_write_s` are part of the time that a task ran. `fetch_wait_s` (waiting for blocks of
    other executors) is not part of `run_s`. `deserialise_s`, `serialise_s` (of the result) and `delay_s` (between the
    scheduler and the executor) come on top. `peak_memory_bytes` is what sorts, joins and aggregations needed.
    `spilled_memory_bytes` did not fit into memory, and became `spilled_disk_bytes`. `locality` is the level that the
    scheduler reached: 0 the same process, 1 the same host, 2 no preference, 3 the same rack, 4 anywhere. `attempts`
    counts the attempts at a partition, and `failed_s` is the time of those that did not succeed.
    """

    cpu_s: Array
    gc_s: Array
    fetch_wait_s: Array
    shuffle_write_s: Array
    deserialise_s: Array
    serialise_s: Array
    delay_s: Array
    peak_memory_bytes: Array
    spilled_memory_bytes: Array
    spilled_disk_bytes: Array
    input_bytes: Array
    output_bytes: Array
    shuffle_read_bytes: Array
    shuffle_write_bytes: Array
    locality: Array
    attempts: Array
    failed_s: Array

    @classmethod
    def unknown(cls, instances: int) -> TaskCosts:
        return cls(*(np.full(instances, NAN) for _ in fields(cls)))


@dataclass(frozen=True, slots=True)
class TaskSample:
    """Columns with one entry per instance of a component.

    `run_s` is useful time (neither waiting for input nor held back), `pending_rows` the instance's own
    queue, `pressured_s` the time in which it held its senders back, `finish_s` when its task ended after
    the stage began. A dataflow has no `finish_s`; a micro-batch has neither queue nor back-pressure.
    `worker` indexes the observation's workers, -1 where unknown. `costs` says what the tasks spent their time on;
    None if the engine does not report it. `began_s` and `ended_s` are when the stage began and ended, in seconds after
    the batch began.
    """

    rows: Array
    run_s: Array
    rows_out: Array
    pending_rows: Array
    pressured_s: Array
    finish_s: Array
    worker: IntArray
    costs: TaskCosts | None = None
    began_s: float = NAN
    ended_s: float = NAN

    @property
    def instances(self) -> int:
        return len(self.rows)


@dataclass(frozen=True, slots=True)
class WorkerSample:
    """Columns with one entry per worker: an executor, or the process of one dataflow instance.

    `heap_bytes` is the most that was used of `heap_limit_bytes`. Both are empty if the engine does not report them.
    """

    ids: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    slots: Array = field(default_factory=lambda: np.empty(0))
    alive: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, dtype=np.bool_))
    heap_bytes: Array = field(default_factory=lambda: np.empty(0))
    heap_limit_bytes: Array = field(default_factory=lambda: np.empty(0))


@dataclass(frozen=True, slots=True)
class WorkerLoss:
    """A worker that was lost since the observation before, not one that was asked to leave."""

    worker: str
    host: str = ""
    reason: str = ""


@dataclass(frozen=True, slots=True)
class TaskFailure:
    """Attempts at one partition of a component that failed with the same reason."""

    component: str
    partition: int
    reason: str
    count: int = 1


@dataclass(frozen=True, slots=True)
class JobSpan:
    """A job of the batch that runs no stage of the query: the sink or the user's function started it."""

    began_s: float
    ended_s: float
    name: str = ""


@dataclass(frozen=True, slots=True)
class DriverSample:
    """The process that plans batches and schedules tasks. `gc_s` is the time of garbage collection in the batch."""

    heap_bytes: float = NAN
    heap_limit_bytes: float = NAN
    gc_s: float = NAN


@dataclass(frozen=True, slots=True)
class HostSample:
    """A machine on which workers run. `busy` is the share of its cores in use, `others` the share used by processes
    that are not the application's."""

    host: str
    cores: float = NAN
    busy: float = NAN
    others: float = NAN


@dataclass(frozen=True, slots=True)
class FileSample:
    """The files that a batch read and wrote."""

    read: float = NAN
    read_bytes: float = NAN
    written: float = NAN
    written_bytes: float = NAN


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
    `stall_s` is how long writers waited for the store, `pinned_bytes` memory that it cannot give back. `update_s`,
    `remove_s` and `commit_s` are the times of all partitions together. `late_rows` came after the watermark and were
    dropped.
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
    update_s: float = NAN
    remove_s: float = NAN
    late_rows: float = NAN
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
class DiskSample:
    """A disk that the application uses. `uses` says for what; `full_in_s` is when it is full at the present rate."""

    uses: tuple[str, ...]
    path: str
    free_bytes: float
    total_bytes: float
    full_in_s: float = NAN


@dataclass(frozen=True, slots=True)
class SavepointSample:
    """The savepoints of a checkpoint. `held_bytes` is what deleting all of them would free."""

    path: str
    count: int
    held_bytes: float


@dataclass(frozen=True, slots=True)
class Observation:
    """Everything measured in one batch or interval that ended at `at_s` and covers `span_s`.

    (`run`, `batch`) is its key: an observation that is delivered twice counts once. `states` is by operator, empty for
    a query without state. `balance` says how its keys would fall on other partitions, if that was measured. `keys` says
    how uneven its rows were, by the scope of the knob that can spread them. `left_out` counts the tasks of a component
    that were not read, because there are too many; their columns hold NaN. `disks` are those that the application uses.
    `savepoints` is None where they are not known.
    `failures` are of tasks, `losses` of workers. `other_jobs` run no stage of the query. `sources` is what
    the sources said last.
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
    disks: tuple[DiskSample, ...] = ()
    savepoints: SavepointSample | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    failures: tuple[TaskFailure, ...] = ()
    losses: tuple[WorkerLoss, ...] = ()
    other_jobs: tuple[JobSpan, ...] = ()
    driver: DriverSample = DriverSample()
    hosts: tuple[HostSample, ...] = ()
    files: FileSample = FileSample()
    sources: tuple[SourceSample, ...] = ()
    task_count: int = field(default=0, init=False, repr=False, compare=False)
    _answers: dict[Hashable, object] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "task_count", sum(sample.instances for sample in self.tasks.values()))

    def once(self, name: Hashable, compute: Callable[[], _Result]) -> _Result:
        """Return what `compute` makes of this observation alone. It runs once, however many cycles look back here."""
        if name not in self._answers:
            self._answers[name] = compute()
        return cast(_Result, self._answers[name])

    @property
    def intervals(self) -> int:
        flows = self.flows
        return intervals(max((f.seconds for f in flows), default=NAN), max((f.trigger_s for f in flows), default=NAN))
