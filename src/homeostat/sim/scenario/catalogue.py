"""Load scenarios from TOML: the shipped ones and your own. docs/reference/scenarios.md has the schema."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from importlib import resources
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from homeostat.core.errors import ConfigError
from homeostat.core.objective import Objective
from homeostat.recorded_data import trace_file
from homeostat.sim.scenario.checks import contradictions
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    Spike,
    WorkloadSpec,
)
from homeostat.sim.scenario.tables import LoadTable, ScenarioTable, StepsTable, TraceTable
from homeostat.strict.toml_reading import Document, Table, nearest
from homeostat.strict.units import format_duration

TRACE_KEYS = ("file", "values", "scale", "speedup", "max_gap_s")


def names() -> tuple[str, ...]:
    """The scenarios that ship with the package, in their natural order."""
    return tuple(sorted(_library(), key=_natural))


def titles() -> Mapping[str, str]:
    """Name → title of every scenario that ships with the package."""
    return {name: str(open_document(name).data["title"]) for name in names()}


def load(name_or_path: str | Path) -> Scenario:
    """A shipped scenario by its name, or your own by its path."""
    document = open_document(name_or_path)
    return read(document, Path(name_or_path).parent)


def loads(text: str, name: str = "scenario", folder: str | Path = ".") -> Scenario:
    """A scenario from text. Paths of trace files are relative to `folder`."""
    return read(Document.parse(text, name), Path(folder))


def open_document(name_or_path: str | Path) -> Document:
    """The parsed file with its line numbers, to read [settings] from with `document.read(model, at=…)`."""
    library = _library()
    text = str(name_or_path)
    if text in library:
        return Document.parse(library[text].read_text(encoding="utf-8"), f"{text}.toml")
    is_path = isinstance(name_or_path, Path) or text.endswith(".toml") or "/" in text or "\\" in text
    if is_path or _is_file(text):
        return Document.open(name_or_path)
    fix = f"{nearest(text, names())}; or give the path of a .toml file"
    raise ConfigError(f"there is no scenario '{text}'", fix=fix)


def read(document: Document, folder: Path) -> Scenario:
    table = document.read(ScenarioTable)
    scenario = replace(_scenario(table, Path(document.name).stem), settings=document.data.get("settings", {}))
    problems = list(contradictions(table, scenario))
    if problems:
        raise document.error_of(problems)
    if isinstance(table.workload, TraceTable):
        return _with_trace(scenario, table.workload, document, folder)
    return scenario


def _scenario(table: ScenarioTable, default_name: str) -> Scenario:
    engine: DataflowSpec | MicrobatchSpec
    if table.engine == "dataflow":
        engine = DataflowSpec(**_user_values(table.dataflow))
    else:
        engine = MicrobatchSpec(**_user_values(table.microbatch))
    optional: dict[str, Any] = {key: value for key in ("policy", "seed") if (value := getattr(table, key)) is not None}
    return Scenario(
        name=table.name or default_name,
        title=table.title,
        engine=engine,
        duration_s=table.duration_s,
        components=tuple(_component(component) for component in table.component),
        workload=_workload(table.workload),
        service_noise=Noise(**_user_values(table.service_noise)),
        faults=tuple(FaultSpec(**_user_values(fault)) for fault in table.fault or ()),
        objective=Objective(**_user_values(table.objective)),
        **optional,
    )


def _user_values(table: Table | None, *but: str) -> dict[str, Any]:
    """The values that the user set, under their names in `spec`, which has the defaults."""
    return table.model_dump(exclude_unset=True, exclude=set(but)) if table is not None else {}


def _component(table: Table) -> ComponentSpec:
    values = _user_values(table)
    return ComponentSpec(**values | {"inputs": tuple(values.get("inputs", ()))})


def _workload(table: LoadTable) -> WorkloadSpec:
    values = _user_values(table, "steps", "spikes", "noise", *TRACE_KEYS)
    if isinstance(table, StepsTable):
        values["steps"] = tuple((step.at_s, step.rate_per_s) for step in table.steps)
    values["spikes"] = tuple(Spike(**_user_values(spike)) for spike in table.spikes or ())
    return WorkloadSpec(**values, noise=Noise(**_user_values(table.noise)))


def _with_trace(scenario: Scenario, table: TraceTable, document: Document, folder: Path) -> Scenario:
    path = folder / table.file
    if path.is_dir():
        raise ConfigError(
            f"the trace file '{table.file}' is a directory",
            where=document.where(("workload", "file")),
            fix="name a CSV file inside it",
        )
    if not path.is_file():
        raise ConfigError(
            f"the trace file '{table.file}' does not exist",
            where=document.where(("workload", "file")),
            fix="relative paths start at the folder of the scenario file",
        )
    options = trace_file.TraceOptions(**_user_values(table, "kind", "file", "spikes", "noise"))
    recorded = trace_file.read(path, options)
    notes = [f"{path.name}: {repair}" for repair in recorded.repairs]
    if recorded.duration_s < scenario.duration_s:
        end = format_duration(recorded.duration_s)
        notes.append(f"{path.name}: ends at {end}, before the run does; its last value is used until then")
    workload = replace(scenario.workload, trace=recorded.points)
    return replace(scenario, workload=workload, notes=tuple(notes))


def _library() -> dict[str, Traversable]:
    folder = resources.files("homeostat.sim.scenario") / "shipped"
    return {file.name.removesuffix(".toml"): file for file in folder.iterdir() if file.name.endswith(".toml")}


def _natural(name: str) -> tuple[int, str]:
    digits = re.search(r"\d+", name)
    return (int(digits[0]) if digits else 0, name)


def _is_file(text: str) -> bool:
    try:
        return Path(text).is_file()
    except (OSError, ValueError):
        return False
