"""Loads to forecast from: a CSV file, a run in the log, Spark's event log, or a scenario."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from homeostat.cli.find_application import require_log, store_path
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from homeostat.recorded_data.load import Load
    from homeostat.recorded_data.run import RecordedRun
    from homeostat.store.address import LogAddress

VALUES = ("count", "rate")
LEAST_BATCHES = 2


def load_of(source: str | None, values: str, store: str | None, run: str | None, event_log: Path | None) -> Load:
    """The load that the options name. Without options: the load of the newest run in the log."""
    if values not in VALUES:
        raise ConfigError(f"unknown kind of values {values!r}", where="--values", fix=f"use {' or '.join(VALUES)}")
    if (source is not None or event_log is not None) and (store is not None or run is not None):
        raise ConfigError(
            "a log and another source of the load are both given", where="--store", fix="give only one of them"
        )
    if source is not None and event_log is not None:
        raise ConfigError(
            "an event log and another source of the load are both given", where="--event-log", fix="give only one"
        )
    if event_log is not None:
        from homeostat.spark.outside.logged_run import record

        return recorded_load(record(event_log), str(event_log))
    if source is None:
        return stored_load(store_path(store), run)
    path = Path(source)
    if path.suffix == ".toml" or not (path.suffix or path.exists()):
        return simulated_load(source)
    from homeostat.recorded_data import load_file

    kind: Literal["count", "rate"] = "rate" if values == "rate" else "count"
    return load_file.read(path, kind)


def one_source(load: Load, name: str) -> Load:
    from homeostat.strict.toml_reading import nearest

    if name not in load.sources:
        fix = nearest(name, list(load.sources)) or "it has only one source: remove --of"
        raise ConfigError(f"{load.name} has no source {name!r}", where="--of", fix=fix)
    return replace(load, name=f"{name} of {load.name}", per_s=load.sources[name], sources={})


def stored_load(path: LogAddress, run: str | None) -> Load:
    """The arrival rate of each batch of a run in the log."""
    from homeostat.cli.log import run_name
    from homeostat.log_views.traffic_history import arrival_history
    from homeostat.recorded_data.load import Load
    from homeostat.store.opening import open_store

    store = open_store(require_log(path, "give a CSV file, a scenario, or a log with --store"), read_only=True)
    try:
        name = run_name(store, run, path)
        history = arrival_history(store, name)
    finally:
        store.close()
    load = Load(f"{name} in {path}", history.times_s, history.per_s, sources=history.sources)
    return _enough(load, f"run {name}", str(path))


def recorded_load(recording: RecordedRun, path: str) -> Load:
    """The arrival rate of each batch of a query in Spark's event log."""
    from homeostat.recorded_data.arrivals import arrivals, arrivals_by_source
    from homeostat.recorded_data.load import Load

    load = Load(f"{recording.query} in {path}", *arrivals(recording), recording.notes, arrivals_by_source(recording))
    return _enough(load, f"query {recording.query}", path)


def _enough(load: Load, what: str, where: str | Path) -> Load:
    if len(load.times_s) < LEAST_BATCHES:
        raise ConfigError(
            f"{what} has too few batches for a forecast", where=str(where), fix="let the application run for a while"
        )
    return load


def simulated_load(name: str) -> Load:
    """The load of a scenario, including its noise."""
    import numpy as np

    from homeostat.cli import scenario_arguments
    from homeostat.recorded_data.load import Load
    from homeostat.sim.simulation import interval_s
    from homeostat.sim.workload import Workload

    scenario = scenario_arguments.load_scenario(name)
    step_s = interval_s(scenario)
    workload = Workload(scenario.workload, scenario.seed, step_s)
    starts_s = np.arange(int(scenario.duration_s / step_s), dtype=np.float64) * step_s
    per_s = np.array([workload.rows_between(start_s, start_s + step_s) / step_s for start_s in starts_s])
    sources = [component.name for component in scenario.components if component.kind == "source"]
    by_source = {name: per_s / len(sources) for name in sources} if len(sources) > 1 else {}
    return Load(scenario.name, starts_s, per_s, sources=by_source)
