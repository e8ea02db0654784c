"""The parts of a scenario as plain values. `catalogue` reads them from TOML; tests write them directly."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

import numpy as np

from homeostat.core.objective import Objective
from homeostat.core.observation import Array


@dataclass(frozen=True, slots=True)
class Noise:
    """Log-normal noise with mean 1: exp of AR(1) with standard deviation `sigma` and lag-1 correlation `phi`."""

    sigma: float = 0.0
    phi: float = 0.0


@dataclass(frozen=True, slots=True)
class ComponentSpec:
    """A stage. One healthy instance processes (a source: emits) `rate_per_s` rows per second of useful time.

    `parallelism` is the number of instances at the start: long-running ones in a dataflow, partitions (tasks) in a
    micro-batch. A keyed component hashes `keys` keys with the Zipf exponent `zipf` to its instances. After every
    `turn_s` new keys replace them, so that another key is the most frequent.

    Dataflow only: `queue_s` is how many seconds of work fit in the queue of an instance.

    Micro-batch only: `task_s` is the fixed cost of a task and `key_s` the cost of each updated key. `stateful` tasks
    prefer the executor that has their state. If tasks merge rows of the same key before they send them, the rows sent
    grow with the power `combining` (at most 1) of the rows read. If executors share cores, each other busy executor
    adds the share `crowding` to the fixed cost of a task.
    """

    name: str
    kind: Literal["source", "operator"] = "operator"
    inputs: tuple[str, ...] = ()
    parallelism: int = 1
    rate_per_s: float = 1000.0
    selectivity: float = 1.0
    combining: float = 1.0
    keyed: bool = False
    keys: int = 1000
    zipf: float = 0.0
    turn_s: float = float("inf")
    queue_s: float = 10.0
    minimum: int = 1
    maximum: int = 1000
    task_s: float = 0.02
    crowding: float = 0.0
    key_s: float = 0.0
    stateful: bool = False

    def rows_out(self, rows: Array) -> Array:
        """The rows that tasks send on, given the rows that they read."""
        sent_rows: Array = self.selectivity * rows * np.maximum(rows, 1.0) ** (self.combining - 1.0)
        return sent_rows


@dataclass(frozen=True, slots=True)
class Spike:
    at_s: float
    for_s: float
    factor: float


@dataclass(frozen=True, slots=True)
class WorkloadSpec:
    """Rows that arrive per second over time. `kind` selects the fields that apply: docs/reference/scenarios.md."""

    kind: Literal["constant", "steps", "ramp", "sine", "diurnal", "trace"] = "constant"
    rate_per_s: float = 0.0
    steps: tuple[tuple[float, float], ...] = ()
    to_per_s: float = 0.0
    start_s: float = 0.0
    end_s: float = 0.0
    amplitude_per_s: float = 0.0
    period_s: float = 86_400.0
    spikes: tuple[Spike, ...] = ()
    trace: tuple[tuple[float, float], ...] = ()
    noise: Noise = Noise()


FaultKind = Literal[
    "slow-instance",
    "slow-host",
    "hot-key",
    "hash-imbalance",
    "crash",
    "stuck-sink",
    "metric-gap",
    "garbage-metrics",
    "slow-sink",
    "slow-commit",
    "slow-planning",
    "slow-scheduling",
    "collecting",
    "driver-memory",
    "slow-source",
    "small-files",
    "slow-fetch",
    "outside-system",
    "slow-network",
    "contention",
    "memory",
    "spill",
    "state-store",
    "growing-state",
    "stalled-watermark",
    "late-rows",
    "rising-cost",
    "costly-keys",
    "skewed-join",
    "task-failures",
    "poison-row",
    "stuck-task",
    "dying-executors",
]


@dataclass(frozen=True, slots=True)
class FaultSpec:
    """Something that goes wrong from `at_s` until `until_s`; by default forever, unless the loop heals it.

    `factor`: how many times slower (slow-instance, slow-host), more expensive (costly-keys) or more rows (skewed-join).
    `share`: the part of the load on the hottest key (hot-key), of the measurements that is lost or garbled (metric-gap,
    garbage-metrics), of the CPU that other processes take (contention), of the driver's heap in use (driver-memory), of
    the attempts that fail (task-failures), or of the rows that are late (late-rows). `stride`: all keys are multiples
    of this number (hash-imbalance). `instance`: which instance or executor (slow-instance, crash) or partition
    (costly-keys, skewed-join, poison-row, stuck-task). A slow instance stays slow as long as its process lives; its
    replacement is healthy. A slow host slows every process on it.

    `seconds`: the time that is added to each batch, and `row_s` for each row. `task_s`: the time that is added to each
    task, or to each partition of the state. `growth`: the share by which the fault grows per hour. `rows`: how many
    rows fit into the memory of an executor (memory) or of a task (spill), or into a file (small-files), which takes
    `file_s` to open. `job`: whether the sink runs a separate job. `attempts`: how many attempts fail (poison-row).
    `every_s`: the time between two deaths, and `reason` the reason that the cluster reports (dying-executors).
    """

    kind: FaultKind
    at_s: float = 0.0
    until_s: float = float("inf")
    component: str = ""
    instance: int = 0
    host: str = ""
    factor: float = 4.0
    share: float = 0.5
    stride: int = 2
    seconds: float = 5.0
    row_s: float = 0.0
    task_s: float = 0.0
    growth: float = 0.0
    rows: float = 1000.0
    file_s: float = 0.02
    job: bool = False
    attempts: int = 3
    every_s: float = 60.0
    reason: str = "exited with code 137"


@dataclass(frozen=True, slots=True)
class DataflowSpec:
    """Long-running instances: `tick_s` between measurements, `step_s` of the fluid integration."""

    tick_s: float = 10.0
    step_s: float = 1.0
    redeploy_s: float = 30.0
    replace_s: float = 10.0
    hosts: int = 4
    replayable: bool = True
    combine_overhead: float = 0.05


@dataclass(frozen=True, slots=True)
class MicrobatchSpec:
    """Tasks on shared slots, batch by batch.

    The times of all tasks of a run are multiplied by one log-normal factor, which stands for other work on the
    machines. Its logarithm has the standard deviation `run_sigma`. The driver starts one task at a time and needs
    `dispatch_s` for each.

    With changelog checkpointing, a slow state store needs only the share `changelog_commit` of its fixed time for each
    commit. If this is None, changelog checkpointing cannot be switched on. `async_progress`: progress can be tracked
    asynchronously. `live_limits`: rows per trigger and the trigger interval change without a restart.
    """

    trigger_s: float = 10.0
    rows_per_trigger: float = float("inf")
    executors: int = 1
    slots: int = 1
    max_executors: int = 100
    executor_start_s: float = 10.0
    warm_up: float = 1.5
    locality_wait_s: float = 3.0
    driver_s: float = 0.5
    dispatch_s: float = 0.0
    commit_s: float = 0.2
    restart_s: float = 5.0
    hosts: int = 4
    straggler_share: float = 0.0
    straggler_factor: float = 3.0
    run_sigma: float = 0.0
    grant_limit: int = 1000
    combine_overhead: float = 0.05
    changelog_commit: float | None = None
    async_progress: bool = False
    live_limits: bool = False


@dataclass(frozen=True, slots=True)
class Scenario:
    """A whole experiment: application, load, faults, objective, and the settings of the policy under test.

    `notes` describe what was repaired or assumed when the scenario was read, such as gaps in a trace.
    """

    name: str
    title: str
    engine: DataflowSpec | MicrobatchSpec
    duration_s: float
    components: tuple[ComponentSpec, ...]
    workload: WorkloadSpec
    service_noise: Noise = Noise()
    faults: tuple[FaultSpec, ...] = ()
    objective: Objective = Objective()
    policy: str = "provisioning"
    settings: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    seed: int = 1
    notes: tuple[str, ...] = ()
