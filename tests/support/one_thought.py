"""One step of a policy on a steady stretch of a dataflow (source → flatmap → count) or of micro-batches."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS,
    PARALLELISM,
    SPREAD,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Value,
)
from homeostat.core.cycle import Trace, step
from homeostat.core.events import EngineChanged, Event, Observed
from homeostat.core.findings import Proposal
from homeostat.core.loop_state import State
from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Array, FlowSample, Observation, TaskSample, WorkerSample
from homeostat.core.policy_definition import Policy
from homeostat.core.topology import Component, Topology

Columns = Mapping[str, Sequence[float]]
Damage = Callable[[Observation], Observation]
CHAIN = {"source": (), "flatmap": ("source",), "count": ("flatmap",)}
TICK_S = 10.0
APP = Knob(EXECUTORS, "app")


def _column(columns: Columns, name: str, default: float, instances: int) -> Array:
    return np.array(columns.get(name, [default] * instances), dtype=np.float64)


def _sample(columns: Columns, instances: int, first_worker: int, workers: int, batch: bool) -> TaskSample:
    run_s = _column(columns, "run_s", 5.0, instances)
    return TaskSample(
        rows=_column(columns, "rows", 1000.0, instances),
        run_s=run_s,
        rows_out=_column(columns, "rows_out", 1000.0, instances),
        pending_rows=_column(columns, "pending_rows", NAN if batch else 0.0, instances),
        pressured_s=_column(columns, "pressured_s", NAN if batch else 0.0, instances),
        finish_s=run_s if batch else np.full(instances, NAN),
        worker=(np.arange(instances) + first_worker) % workers,
    )


def _topology(scaled_by: Callable[[str], Knob]) -> Topology:
    return Topology(
        tuple(
            Component(
                name,
                "operator" if inputs else "source",
                scaled_by(name),
                inputs,
                keyed=name == "count",
                spread=Knob(SPREAD, "count") if name == "count" else None,
            )
            for name, inputs in CHAIN.items()
        )
    )


def _think(
    policy: Policy,
    topology: Topology,
    values: Mapping[Knob, Value],
    bounds: Mapping[Knob, KnobSpec],
    observations: Sequence[Observation],
    objective: Objective,
) -> Trace:
    knobs = {knob: KnobSpec(cost=0.0 if knob.kind == SPREAD else 1.0) for knob in values} | dict(bounds)
    engine = EngineChanged(topology, Configuration(values), Capabilities(knobs, can_replace=True), 0.0)
    events: list[Event] = [engine, *map(Observed, observations)]
    state = State(mode="advise", objective=objective)
    return step(policy, state, events, observations[-1].at_s)[2]


def think(
    policy: Policy,
    tasks: Mapping[str, Columns],
    *,
    ticks: int = 30,
    arrival_per_s: float = 100.0,
    taken_per_s: float | None = None,
    pending_rows: float = 0.0,
    throughput_per_s: float | None = None,
    bounds: Mapping[Knob, KnobSpec] | None = None,
    spread: int | None = 1,
    damage: Damage = lambda observation: observation,
) -> Trace:
    """On a dataflow. `tasks` holds each component's columns, one number per instance, the same in every 10 s."""
    counts = {name: len(next(iter(tasks.get(name, {"rows": [1]}).values()))) for name in CHAIN}
    values: dict[Knob, Value] = {Knob(PARALLELISM, name): count for name, count in counts.items()}
    if spread is not None:
        values[Knob(SPREAD, "count")] = spread
    ids = tuple(f"{name}-{i}" for name, count in counts.items() for i in range(count))
    workers = WorkerSample(ids, ("host",) * len(ids), np.ones(len(ids)), np.ones(len(ids), dtype=np.bool_))
    processed_per_s = arrival_per_s if taken_per_s is None else taken_per_s
    flow = FlowSample("source", rows=processed_per_s * TICK_S, arrival_per_s=arrival_per_s, pending_rows=pending_rows)
    offset = np.cumsum([0, *counts.values()])
    samples = {
        name: _sample(tasks.get(name, {}), count, int(offset[number]), len(ids), batch=False)
        for number, (name, count) in enumerate(counts.items())
    }
    one = Observation(0.0, TICK_S, 0, (flow,), samples, workers)
    observations = [damage(replace(one, at_s=TICK_S * (n + 1), batch=n)) for n in range(ticks)]
    topology = _topology(lambda name: Knob(PARALLELISM, name))
    return _think(policy, topology, values, bounds or {}, observations, Objective(throughput_per_s))


def think_batches(
    policy: Policy,
    *,
    seconds: float = 5.0,
    tasks: Mapping[str, Columns] | None = None,
    executors: int = 4,
    batches: int = 60,
    arrival_per_s: float = 100.0,
    rows: float | None = None,
    pending_rows: float = 0.0,
    damage: Damage = lambda observation: observation,
) -> Trace:
    """On micro-batches with a trigger of 10 s and shared executors."""
    columns_by_name = tasks or {}
    cycle_s = max(seconds, TICK_S)
    flow = FlowSample(
        "source",
        rows=arrival_per_s * cycle_s if rows is None else rows,
        seconds=seconds,
        trigger_s=TICK_S,
        arrival_per_s=arrival_per_s,
        pending_rows=pending_rows,
    )
    ids = tuple(f"exec-{i}" for i in range(executors))
    workers = WorkerSample(ids, ("host",) * executors, np.ones(executors), np.ones(executors, dtype=np.bool_))
    samples = {
        name: _sample(
            columns_by_name.get(name, {}),
            len(next(iter(columns_by_name.get(name, {"": [0] * 4}).values()))),
            0,
            executors,
            True,
        )
        for name in CHAIN
    }
    one = Observation(0.0, cycle_s, 0, (flow,), samples, workers)
    observations = [damage(replace(one, at_s=cycle_s * (n + 1), batch=n)) for n in range(batches)]
    topology = _topology(lambda name: APP)
    values: dict[Knob, Value] = {APP: executors, Knob(SPREAD, "count"): 1}
    return _think(policy, topology, values, {}, observations, Objective())


def proposed_values(trace: Trace) -> dict[str, float]:
    """The values of the one proposal; empty if there is none."""
    assert len(trace.proposals) <= 1
    return {str(knob): value for proposal in trace.proposals for knob, value in proposal.patch.values.items()}


def only(trace: Trace) -> Proposal:
    (proposal,) = trace.proposals
    return proposal


def chain(instances: int, busy_s: float, rows: float = 1000.0) -> Mapping[str, Columns]:
    """Every component has so many instances, and each processes `rows` in `busy_s` of every 10 s."""
    columns = {"rows": [rows] * instances, "rows_out": [rows] * instances, "run_s": [busy_s] * instances}
    return dict.fromkeys(("source", "flatmap", "count"), columns)
