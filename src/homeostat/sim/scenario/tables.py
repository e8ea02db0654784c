"""The schema of a scenario file: its tables and keys, with their types and units.

Each field has the name of the value in `spec` that it sets. Its alias is the key that a user writes. Defaults are in
`spec` only: a key that is left out is not set here.
"""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field

from homeostat.recorded_data.load import ValueKind
from homeostat.settings import Settings
from homeostat.sim.scenario.fault_tables import FaultTable
from homeostat.sim.scenario.table_types import (
    MOST_KEYS,
    Amount,
    Duration,
    Factor,
    Instances,
    Name,
    Number,
    PositiveDuration,
    PositiveRate,
    Rate,
    Slowdown,
    Text,
    optional,
)
from homeostat.strict.toml_reading import (
    Count,
    PositiveCount,
    PositiveError,
    Share,
    Table,
)


class NoiseTable(Table):
    sigma: Annotated[float, Field(ge=0, le=2)]
    phi: Annotated[float, Field(gt=-1, lt=1)] = optional()


class DataflowTable(Table):
    tick_s: PositiveDuration = optional("tick")
    step_s: PositiveDuration = optional("step")
    redeploy_s: Duration = optional("redeploy")
    replace_s: Duration = optional("replace")
    hosts: Instances = optional()
    replayable: bool = optional()
    combine_overhead: Annotated[Share, Field(lt=1)] = optional()


class MicrobatchTable(Table):
    trigger_s: Duration = optional("trigger")
    rows_per_trigger: PositiveCount = optional()
    executors: Instances = optional()
    slots: Instances = optional()
    max_executors: Instances = optional()
    executor_start_s: Duration = optional("executor_start")
    warm_up: Slowdown = optional()
    locality_wait_s: Duration = optional("locality_wait")
    driver_s: Duration = optional("driver")
    dispatch_s: Duration = optional("dispatch")
    commit_s: Duration = optional("commit")
    restart_s: Duration = optional("restart")
    hosts: Instances = optional()
    straggler_share: Share = optional()
    straggler_factor: Slowdown = optional()
    run_sigma: Annotated[float, Field(ge=0, le=2)] = optional()
    grant_limit: Instances = optional()
    combine_overhead: Annotated[Share, Field(lt=1)] = optional()
    changelog_commit: Share = optional()
    async_progress: bool = optional()
    live_limits: bool = optional()


class ComponentTable(Table):
    name: Name
    kind: Literal["source", "operator"] = optional()
    inputs: list[str] = optional()
    parallelism: Instances = optional()
    rate_per_s: PositiveRate = Field(alias="rate")
    selectivity: Amount = optional()
    combining: Share = optional()
    keyed: bool = optional()
    keys: Annotated[Count, Field(ge=1, le=MOST_KEYS)] = optional()
    zipf: Amount = optional()
    turn_s: PositiveDuration = optional("turn")
    queue_s: PositiveDuration = optional("queue")
    minimum: Instances = optional()
    maximum: Instances = optional()
    task_s: Duration = optional("task")
    crowding: Share = optional()
    key_s: Duration = optional("key")
    stateful: bool = optional()


class StepTable(Table):
    at_s: Duration = Field(alias="at")
    rate_per_s: Rate = Field(alias="rate")


class SpikeTable(Table):
    at_s: Duration = Field(alias="at")
    for_s: PositiveDuration = Field(alias="for")
    factor: Amount


class LoadTable(Table):
    """The keys that every kind of load may have."""

    spikes: list[SpikeTable] = optional()
    noise: NoiseTable = optional()


class ConstantTable(LoadTable):
    kind: Literal["constant"]
    rate_per_s: PositiveRate = Field(alias="rate")


class StepsTable(LoadTable):
    kind: Literal["steps"]
    steps: Annotated[list[StepTable], Field(min_length=1)]


class RampTable(LoadTable):
    kind: Literal["ramp"]
    rate_per_s: Rate = Field(alias="rate")
    to_per_s: Rate = Field(alias="to")
    start_s: Duration = optional("start")
    end_s: PositiveDuration = Field(alias="end")


class SineTable(LoadTable):
    kind: Literal["sine"]
    rate_per_s: PositiveRate = Field(alias="rate")
    amplitude_per_s: Rate = Field(alias="amplitude")
    period_s: PositiveDuration = optional("period")


class DiurnalTable(LoadTable):
    kind: Literal["diurnal"]
    rate_per_s: Rate = Field(alias="night")
    to_per_s: PositiveRate = Field(alias="peak")
    period_s: PositiveDuration = optional("period")


class TraceTable(LoadTable):
    kind: Literal["trace"]
    file: Text
    values: ValueKind = optional()
    scale: Factor = optional()
    speedup: Factor = optional()
    max_gap_s: PositiveDuration = optional("max_gap")


WorkloadTable = Annotated[
    ConstantTable | StepsTable | RampTable | SineTable | DiurnalTable | TraceTable, Field(discriminator="kind")
]


class ObjectiveTable(Table):
    throughput_per_s: PositiveRate = optional("throughput")
    lag_s: PositiveDuration = optional("lag")
    catch_up_s: PositiveDuration = optional("catch_up")
    latency_p95_s: PositiveDuration = optional("latency")
    cost_limit: Factor = optional()
    model_error: PositiveError = optional()


class ScenarioTable(Table):
    name: Name = optional()
    title: Text
    engine: Literal["dataflow", "microbatch"]
    duration_s: PositiveDuration = Field(alias="duration")
    seed: Number = optional()
    policy: Text = optional()
    service_noise: NoiseTable = optional()
    dataflow: DataflowTable = optional()
    microbatch: MicrobatchTable = optional()
    component: Annotated[list[ComponentTable], Field(min_length=1)]
    workload: WorkloadTable
    fault: list[FaultTable] = optional()
    objective: ObjectiveTable = optional()
    settings: Settings = optional()
