"""Builds the views that a plug-in sees from a few numbers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from homeostat.core.configuration import (
    EXECUTORS,
    EXECUTORS_KNOB,
    PARALLELISM,
    SPREAD,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Value,
)
from homeostat.core.digest import clean, digest
from homeostat.core.events import EngineChanged
from homeostat.core.loop_state import LATEST_KEPT
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Array, FlowSample, Observation, TaskSample, WorkerSample
from homeostat.core.topology import Component, Topology
from homeostat.core.view import View, Window

Numbers = float | Sequence[float] | NDArray[np.float64]
Tasks = Mapping[str, TaskSample]
Series = float | Sequence[float] | NDArray[np.float64]
TASK_COLUMNS = tuple(field.name for field in fields(TaskSample) if field.type == "Array")
FLOW_COLUMNS = tuple(field.name for field in fields(FlowSample) if field.name not in ("source", "query", "phases_s"))
_HOSTS = 4


def instances(
    rows: Numbers = NAN,
    run_s: Numbers = NAN,
    *,
    rows_out: Numbers | None = None,
    pending_rows: Numbers = 0.0,
    pressured_s: Numbers = 0.0,
    finish_s: Numbers | None = None,
    worker: Sequence[int] | None = None,
) -> TaskSample:
    """The instances of one component. Each argument is one number for all of them, or one for each.

    By default as many rows go out as come in. With `finish_s` the instances are tasks of a batch, which have neither a
    queue nor back-pressure.
    """
    columns = [rows, run_s, rows if rows_out is None else rows_out, pending_rows, pressured_s]
    columns.append(NAN if finish_s is None else finish_s)
    count = max(np.size(column) for column in columns)
    in_rows, busy, out_rows, waiting, pressure_s, finish_times = (_column(column, count) for column in columns)
    if finish_s is not None:
        waiting, pressure_s = _column(NAN, count), _column(NAN, count)
    workers = np.array(worker if worker is not None else range(count), dtype=np.int64)
    workers.setflags(write=False)
    return TaskSample(in_rows, busy, out_rows, waiting, pressure_s, finish_times, workers)


def observations(
    count: int,
    tasks: Tasks | Callable[[int], Tasks],
    *,
    span_s: float = 10.0,
    executors: int = 0,
    slots: float = 1.0,
    start_s: float = 0.0,
    **flow: Series,
) -> tuple[Observation, ...]:
    """`count` measurements of a chain of components, given in order with the source first.

    `tasks` is the same each time, or a function of the number of the measurement. `flow` sets what is known of the
    source, once or for each measurement: `arrival_per_s`, `rows`, `pending_rows` (0 unless given), `seconds`,
    `trigger_s` and the other fields of FlowSample. With `executors` the instances share these as workers; else each
    has its own.
    """
    measurements = []
    for number in range(count):
        now = tasks(number) if callable(tasks) else tasks
        numbers = {name: float(np.broadcast_to(series, (count,))[number]) for name, series in flow.items()}
        numbers.setdefault("pending_rows", 0.0)
        source = next(iter(now), "source")
        if "rows" not in numbers:
            numbers["rows"] = float(now[source].rows.sum()) if source in now else NAN
        placed_tasks, workers = _workers(now, executors, slots)
        measurements.append(
            Observation(
                at_s=start_s + (number + 1) * span_s,
                span_s=span_s,
                batch=number,
                flows=(FlowSample(source, **numbers),),  # type: ignore[arg-type]
                tasks=placed_tasks,
                workers=workers,
            )
        )
    return tuple(measurements)


def view_of(
    observed: Sequence[Observation],
    *,
    topology: Topology | None = None,
    values: Mapping[Knob, Value] | None = None,
    capabilities: Capabilities | None = None,
    objective: Objective | None = None,
    now_s: float | None = None,
) -> View:
    """The view of these measurements. All of them belong to the present configuration.

    Unless you give a topology, the components form a chain that begins with the source. `values` are added to the
    configuration that the measurements show.
    """
    clean_observations = tuple(clean(observation) for observation in observed)
    before: Sequence[Observation | None] = [None, *clean_observations]
    history = tuple(digest(now, 1, last) for now, last in zip(clean_observations, before, strict=False))
    shape = topology or _shape(observed)
    configuration = _configuration(shape, observed, values or {})
    return View(
        now_s=now_s if now_s is not None else (observed[-1].at_s if observed else 0.0),
        topology=shape,
        configuration=configuration,
        capabilities=capabilities or _capabilities(configuration),
        objective=objective or Objective(),
        window=Window(clean_observations),
        history=history,
        epoch=1,
        latest=Window(clean_observations[-LATEST_KEPT:]),
    )


def described(view: View, at_s: float = 0.0) -> EngineChanged:
    """The event that describes the engine of this view to the loop."""
    return EngineChanged(view.topology, view.configuration, view.capabilities, at_s)


def blanked(
    observed: Sequence[Observation], *columns: str, component: str = "", last: int | None = None
) -> tuple[Observation, ...]:
    """The same measurements with some values unknown (NaN).

    `columns` names the columns of instances or sources, by default all of them; `component` limits this to one
    component, and `last` to the last so many measurements.
    """
    first = 0 if last is None else max(0, len(observed) - last)
    return tuple(
        _blank(observation, columns, component) if number >= first else observation
        for number, observation in enumerate(observed)
    )


def _blank(observation: Observation, columns: Sequence[str], component: str) -> Observation:
    def selected_names(names: Sequence[str]) -> list[str]:
        return [name for name in names if not columns or name in columns]

    tasks = dict(observation.tasks)
    for name, sample in observation.tasks.items():
        if component in ("", name):
            nothing: dict[str, Any] = {
                column: _column(NAN, sample.instances) for column in selected_names(TASK_COLUMNS)
            }
            tasks[name] = replace(sample, **nothing)
    unknown_values: dict[str, Any] = dict.fromkeys(selected_names(FLOW_COLUMNS), NAN)
    flows = tuple(replace(f, **unknown_values) if component in ("", f.source) else f for f in observation.flows)
    return replace(observation, tasks=tasks, flows=flows)


def _column(numbers: Numbers, count: int) -> Array:
    column: Array = np.array(np.broadcast_to(np.asarray(numbers, dtype=np.float64), (count,)))
    column.setflags(write=False)
    return column


def _workers(tasks: Tasks, executors: int, slots: float) -> tuple[Tasks, WorkerSample]:
    if executors:
        ids = [f"exec-{number}" for number in range(executors)]
        placed_tasks = {name: replace(sample, worker=sample.worker % executors) for name, sample in tasks.items()}
    else:
        ids, placed_tasks = [], {}
        for name, sample in tasks.items():
            placed_tasks[name] = replace(sample, worker=np.arange(len(ids), len(ids) + sample.instances))
            ids += [f"{name}-{number}" for number in range(sample.instances)]
    hosts = tuple(f"host-{number % _HOSTS}" for number in range(len(ids)))
    return placed_tasks, WorkerSample(tuple(ids), hosts, np.full(len(ids), slots), np.ones(len(ids), dtype=np.bool_))


def _shape(observed: Sequence[Observation]) -> Topology:
    names = list(dict.fromkeys(name for observation in observed for name in observation.tasks)) or ["source"]
    batches = any(np.isfinite(flow.seconds) for observation in observed for flow in observation.flows)
    components = []
    for number, name in enumerate(names):
        knob = EXECUTORS_KNOB if batches else Knob(PARALLELISM, name)
        inputs = (names[number - 1],) if number else ()
        spread = Knob(SPREAD, name) if number else None
        components.append(
            Component(name, "operator" if number else "source", knob, inputs, keyed=number > 0, spread=spread)
        )
    return Topology(tuple(components))


def _configuration(shape: Topology, observed: Sequence[Observation], values: Mapping[Knob, Value]) -> Configuration:
    knob_values: dict[Knob, Value] = {}
    for component in shape:
        if component.scaled_by == EXECUTORS_KNOB:
            knob_values[EXECUTORS_KNOB] = max(1, len(observed[-1].workers.ids)) if observed else 1
        else:
            sample = observed[-1].tasks.get(component.name) if observed else None
            knob_values[component.scaled_by] = max(1, sample.instances) if sample is not None else 1
        if component.keyed:
            knob_values[Knob(SPREAD, component.name)] = 1
    return Configuration({**knob_values, **values})


def _capabilities(configuration: Configuration) -> Capabilities:
    """Every knob goes up to 100. An instance or executor costs one."""
    paid_kinds = (PARALLELISM, EXECUTORS)
    knobs = {
        knob: KnobSpec(
            1, 100, live=knob.kind != PARALLELISM, apply_s=30.0, cost=1.0 if knob.kind in paid_kinds else 0.0
        )
        for knob in configuration.values
    }
    return Capabilities(knobs, can_replace=True, replace_s=10.0)
