"""docs/reference/scenarios.md lists every key with its default, an example that runs, and real messages."""

from __future__ import annotations

import re
import tomllib
from dataclasses import fields
from typing import Annotated, Any, get_args

import pytest
from pydantic import BaseModel, TypeAdapter
from pydantic.fields import FieldInfo

from homeostat.core.errors import ConfigError
from homeostat.recorded_data.trace_file import TraceOptions
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.scenario import catalogue, fault_tables, spec
from homeostat.sim.scenario import tables as tables
from homeostat.strict.toml_reading import Table
from support.paths import DOCS


def documentation() -> str:
    return (DOCS / "reference" / "scenarios.md").read_text(encoding="utf-8")


def code(language: str) -> str:
    match = re.search(rf"```{language}\n(.*?)```", documentation(), re.S)
    assert match
    return match[1]


def test_the_worked_example_of_the_documentation_loads_and_runs() -> None:
    scenario = catalogue.loads(code("toml"), "shop.toml")
    assert scenario.name == "shop"
    assert scenario.workload.spikes == (spec.Spike(43_200, 900, 1.5),)
    assert scenario.faults == (spec.FaultSpec("slow-host", 54_000, 57_600, host="host-1", factor=3.0),)
    assert Dataflow(scenario).wait(60.0)


def test_the_sweep_of_the_documentation_varies_the_start() -> None:
    namespace: dict[str, Any] = {}
    exec(code("python"), namespace)
    starts = [[c.parallelism for c in run.components if c.kind == "operator"] for run in namespace["runs"]]
    assert starts == [[start, start] for start in (8, 12, 16, 20, 24, 28)]


def test_the_refusals_shown_in_the_documentation_are_real() -> None:
    text = code("toml").replace("zipf", "zip").replace('peak = "12 k events/s"', 'peak = 12\namplitude = "1 k/s"')
    example = documentation().split("errors are shown together:\n\n```\n")[1].split("\n```")[0]
    with pytest.raises(ConfigError) as refused:
        catalogue.loads(text, "shop.toml")
    assert refused.value.line == example
    contradiction = code("toml").replace('["sessions"]', '["session"]')
    with pytest.raises(ConfigError) as refused:
        catalogue.loads(contradiction, "shop.toml")
    assert f"\n{refused.value.line}\n" in documentation()


SECTIONS: list[tuple[str, type[BaseModel], type[Any] | None]] = [
    ("## Top level", tables.ScenarioTable, spec.Scenario),
    ("## `[dataflow]`", tables.DataflowTable, spec.DataflowSpec),
    ("## `[microbatch]`", tables.MicrobatchTable, spec.MicrobatchSpec),
    ("## `[[component]]`", tables.ComponentTable, spec.ComponentSpec),
    ("## `[workload]`", tables.LoadTable, spec.WorkloadSpec),
    ('### `kind = "constant"`', tables.ConstantTable, spec.WorkloadSpec),
    ('### `kind = "steps"`', tables.StepsTable, spec.WorkloadSpec),
    ('### `kind = "ramp"`', tables.RampTable, spec.WorkloadSpec),
    ('### `kind = "sine"`', tables.SineTable, spec.WorkloadSpec),
    ('### `kind = "diurnal"`', tables.DiurnalTable, spec.WorkloadSpec),
    ('### `kind = "trace"`', tables.TraceTable, TraceOptions),
    ("### spikes", tables.SpikeTable, spec.Spike),
    ("### noise", tables.NoiseTable, spec.Noise),
    ("## `[[fault]]`", fault_tables.TimedTable, spec.FaultSpec),
    ('### `kind = "slow-instance"`', fault_tables.SlowInstanceTable, spec.FaultSpec),
    ('### `kind = "slow-host"`', fault_tables.SlowHostTable, spec.FaultSpec),
    ('### `kind = "hot-key"`', fault_tables.HotKeyTable, spec.FaultSpec),
    ('### `kind = "hash-imbalance"`', fault_tables.HashImbalanceTable, spec.FaultSpec),
    ('### `kind = "crash"`', fault_tables.CrashTable, spec.FaultSpec),
    ('### `kind = "stuck-sink"`', fault_tables.StuckSinkTable, spec.FaultSpec),
    ('### `kind = "metric-gap"` or `"garbage-metrics"`', fault_tables.DamagedMetricsTable, spec.FaultSpec),
    ('### `kind = "slow-sink"`', fault_tables.SlowSinkTable, spec.FaultSpec),
    ('### `kind = "slow-commit"`, `"slow-planning"` or `"slow-source"`', fault_tables.SlowPhaseTable, spec.FaultSpec),
    ('### `kind = "slow-scheduling"`', fault_tables.SlowSchedulingTable, spec.FaultSpec),
    ('### `kind = "collecting"`', fault_tables.CollectingTable, spec.FaultSpec),
    ('### `kind = "driver-memory"`', fault_tables.DriverMemoryTable, spec.FaultSpec),
    ('### `kind = "small-files"`', fault_tables.SmallFilesTable, spec.FaultSpec),
    ('### `kind = "slow-fetch"` or `"outside-system"`', fault_tables.WaitingTable, spec.FaultSpec),
    ('### `kind = "slow-network"`', fault_tables.SlowNetworkTable, spec.FaultSpec),
    ('### `kind = "contention"`', fault_tables.ContentionTable, spec.FaultSpec),
    ('### `kind = "memory"`', fault_tables.MemoryTable, spec.FaultSpec),
    ('### `kind = "spill"`', fault_tables.SpillTable, spec.FaultSpec),
    ('### `kind = "state-store"`', fault_tables.StateStoreTable, spec.FaultSpec),
    ('### `kind = "growing-state"` or `"rising-cost"`', fault_tables.GrowingTable, spec.FaultSpec),
    ('### `kind = "stalled-watermark"`', fault_tables.StalledWatermarkTable, spec.FaultSpec),
    ('### `kind = "late-rows"`', fault_tables.LateRowsTable, spec.FaultSpec),
    ('### `kind = "costly-keys"` or `"skewed-join"`', fault_tables.CostlyPartitionTable, spec.FaultSpec),
    ('### `kind = "task-failures"`', fault_tables.TaskFailuresTable, spec.FaultSpec),
    ('### `kind = "poison-row"`', fault_tables.PoisonRowTable, spec.FaultSpec),
    ('### `kind = "stuck-task"`', fault_tables.StuckTaskTable, spec.FaultSpec),
    ('### `kind = "dying-executors"`', fault_tables.DyingExecutorsTable, spec.FaultSpec),
    ("## `[objective]`", tables.ObjectiveTable, None),
]
COMMON = {"at", "until", "spikes", "noise", "kind"}


def documented(heading: str) -> dict[str, str]:
    """Key → default, from the table below a heading."""
    section = re.split(r"\n##+ ", documentation().split(f"\n{heading}\n")[1])[0]
    return dict(re.findall(r"^\| `(\w+)` \|[^|]*\| *(.*?) *\|", section, re.M))


@pytest.mark.parametrize(("heading", "table", "specification"), SECTIONS)
def test_every_key_is_documented_with_its_default(
    heading: str, table: type[BaseModel], specification: type[Any] | None
) -> None:
    by_key = {info.alias or name: (name, info) for name, info in table.model_fields.items()}
    rows = documented(heading)
    inherited = COMMON if heading.startswith("### `kind") else set()
    assert set(rows) == set(by_key) - inherited
    defaults = {field.name: field.default for field in fields(specification)} if specification else {}
    for key, cell in rows.items():
        name, info = by_key[key]
        assert cell.startswith("–") == (info.is_required() or "in a dataflow" in cell), key
        if cell.startswith("`"):
            written = tomllib.loads(f"value = {cell.strip('`')}")["value"]
            assert validated(info, written) == defaults[name], key


def validated(info: FieldInfo, value: object) -> object:
    """What the type of a key makes of a value."""
    kind: Any = info.annotation
    for constraint in info.metadata:
        kind = Annotated[kind, constraint]
    return TypeAdapter(kind).validate_python(value)


def test_every_table_of_the_schema_has_a_section() -> None:
    defined = {
        table
        for module in (tables, fault_tables)
        for table in vars(module).values()
        if isinstance(table, type) and issubclass(table, Table) and table.__module__ == module.__name__
    }
    assert defined - {table for _, table, _ in SECTIONS} == {tables.StepTable}


def test_every_kind_of_fault_can_be_written() -> None:
    tables_by_kind = {kind for table in fault_tables.TimedTable.__subclasses__() for kind in kinds(table)}
    assert tables_by_kind == set(get_args(spec.FaultKind))


def kinds(table: type[BaseModel]) -> tuple[str, ...]:
    return get_args(table.model_fields["kind"].annotation)


def test_every_shipped_scenario_is_documented() -> None:
    rows = re.findall(r"^\| ([\w, -]+?) \| (?:Dhalion|DS2|ours) \|", documentation(), re.M)
    assert sorted(name for row in rows for name in row.split(", ")) == sorted(catalogue.names())
