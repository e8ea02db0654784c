"""The schema of the faults of a scenario file: the keys of each kind.

Each field has the name of the value in `spec.FaultSpec` that it sets. Its alias is the key that a user writes.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from homeostat.sim.scenario.table_types import (
    MOST_INSTANCES,
    Amount,
    Duration,
    Number,
    PositiveDuration,
    Slowdown,
    Text,
    optional,
)
from homeostat.strict.toml_reading import PositiveCount, Share, Table


class TimedTable(Table):
    """When a fault begins and ends."""

    at_s: Duration = optional("at")
    until_s: Duration = optional("until")


class SlowInstanceTable(TimedTable):
    kind: Literal["slow-instance"]
    component: str = optional()
    instance: Number = optional()
    factor: Slowdown = optional()


class SlowHostTable(TimedTable):
    kind: Literal["slow-host"]
    host: str
    factor: Slowdown = optional()


class HotKeyTable(TimedTable):
    kind: Literal["hot-key"]
    component: str
    share: Share = optional()


class HashImbalanceTable(TimedTable):
    kind: Literal["hash-imbalance"]
    component: str
    stride: Annotated[int, Field(ge=2, le=MOST_INSTANCES)] = optional()


class CrashTable(TimedTable):
    kind: Literal["crash"]
    component: str = optional()
    instance: Number = optional()


class StuckSinkTable(TimedTable):
    kind: Literal["stuck-sink"]
    component: str = optional()


class DamagedMetricsTable(TimedTable):
    kind: Literal["metric-gap", "garbage-metrics"]
    component: str = optional()
    share: Share = optional()


class SlowSinkTable(TimedTable):
    kind: Literal["slow-sink"]
    seconds: Duration = optional("time")
    row_s: Duration = optional("row")
    growth: Amount = optional()
    job: bool = optional()


class SlowPhaseTable(TimedTable):
    kind: Literal["slow-commit", "slow-planning", "slow-source"]
    seconds: Duration = optional("time")
    growth: Amount = optional()


class SlowSchedulingTable(TimedTable):
    kind: Literal["slow-scheduling"]
    task_s: PositiveDuration = Field(alias="task")
    growth: Amount = optional()


class CollectingTable(TimedTable):
    kind: Literal["collecting"]
    row_s: PositiveDuration = Field(alias="row")
    growth: Amount = optional()


class DriverMemoryTable(TimedTable):
    kind: Literal["driver-memory"]
    share: Share = optional()
    growth: Amount = optional()


class SmallFilesTable(TimedTable):
    kind: Literal["small-files"]
    component: str = optional()
    rows: PositiveCount = optional()
    file_s: Duration = optional("file")
    growth: Amount = optional()


class WaitingTable(TimedTable):
    kind: Literal["slow-fetch", "outside-system"]
    component: str = optional()
    task_s: Duration = optional("task")
    row_s: Duration = optional("row")
    growth: Amount = optional()


class SlowNetworkTable(TimedTable):
    kind: Literal["slow-network"]
    component: str = optional()
    row_s: PositiveDuration = Field(alias="row")
    growth: Amount = optional()


class ContentionTable(TimedTable):
    kind: Literal["contention"]
    host: str = optional()
    share: Annotated[Share, Field(lt=1)] = optional()


class MemoryTable(TimedTable):
    kind: Literal["memory"]
    component: str = optional()
    rows: PositiveCount = optional()
    growth: Amount = optional()


class SpillTable(TimedTable):
    kind: Literal["spill"]
    component: str = optional()
    rows: PositiveCount = optional()
    row_s: PositiveDuration = Field(alias="row")
    growth: Amount = optional()


class StateStoreTable(TimedTable):
    kind: Literal["state-store"]
    component: str = optional()
    task_s: Duration = optional("task")
    row_s: Duration = optional("row")
    growth: Amount = optional()


class GrowingTable(TimedTable):
    kind: Literal["growing-state", "rising-cost"]
    component: str = optional()
    growth: Annotated[Amount, Field(gt=0)]


class StalledWatermarkTable(TimedTable):
    kind: Literal["stalled-watermark"]


class LateRowsTable(TimedTable):
    kind: Literal["late-rows"]
    component: str = optional()
    share: Share = optional()


class CostlyPartitionTable(TimedTable):
    kind: Literal["costly-keys", "skewed-join"]
    component: str
    instance: Number = optional()
    factor: Slowdown = optional()


class TaskFailuresTable(TimedTable):
    kind: Literal["task-failures"]
    component: str = optional()
    share: Annotated[Share, Field(lt=1)] = optional()


class PoisonRowTable(TimedTable):
    kind: Literal["poison-row"]
    component: str
    instance: Number = optional()
    attempts: Annotated[int, Field(ge=1, le=4)] = optional()


class StuckTaskTable(TimedTable):
    kind: Literal["stuck-task"]
    component: str
    instance: Number = optional()


class DyingExecutorsTable(TimedTable):
    kind: Literal["dying-executors"]
    every_s: PositiveDuration = optional("every")
    reason: Text = optional()


FaultTable = Annotated[
    SlowInstanceTable
    | SlowHostTable
    | HotKeyTable
    | HashImbalanceTable
    | CrashTable
    | StuckSinkTable
    | DamagedMetricsTable
    | SlowSinkTable
    | SlowPhaseTable
    | SlowSchedulingTable
    | CollectingTable
    | DriverMemoryTable
    | SmallFilesTable
    | WaitingTable
    | SlowNetworkTable
    | ContentionTable
    | MemoryTable
    | SpillTable
    | StateStoreTable
    | GrowingTable
    | StalledWatermarkTable
    | LateRowsTable
    | CostlyPartitionTable
    | TaskFailuresTable
    | PoisonRowTable
    | StuckTaskTable
    | DyingExecutorsTable,
    Field(discriminator="kind"),
]
