"""The model of an application, wherever what was seen of it lies: a log, an event log, a simulation."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    PARALLELISM,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Configuration,
    Knob,
    KnobSpec,
    Value,
)
from homeostat.core.cycle import Trace, step
from homeostat.core.errors import ConfigError
from homeostat.core.events import EngineChanged, Event, Observed
from homeostat.core.loop_state import State
from homeostat.core.observation import NAN, Array, FlowSample, Observation, TaskSample, WorkerSample
from homeostat.core.plugins import look
from homeostat.core.policy import Policy
from homeostat.core.topology import Component, Topology
from homeostat.models.application_model import ApplicationModel, application_model
from homeostat.models.model_json import from_json, to_json
from homeostat.recordings.run import RecordedBatch, RecordedComponent, RecordedRun, RecordedTasks
from homeostat.sim.fit import recorded_load
from homeostat.sim.scenario.spec import Scenario
from homeostat.sim.simulation import SimulatedEngine, simulate
from homeostat.store.protocol import Store

KEY = "model"
EVERY_S = 60.0
TOO_LITTLE = "too little was seen to make a model of it"

_WATCHING = Policy("watching", window_s=3600.0)
_MOST_EXECUTORS = 1_000
_MOST_PARTITIONS = 10_000
_START_S, _RESTART_S = 15.0, 30.0


class Learner:
    """Keeps the newest model of a run in its log, for whoever asks there."""

    def __init__(self, store: Store, run: str) -> None:
        self._store, self._run = store, run
        self._next_s = -math.inf

    def look(self, policy: Policy, state: State, now_s: float) -> None:
        """Fits and writes at most once a minute, and only while nothing is being changed."""
        if now_s < self._next_s or not state.window or any(action.applied_s is None for action in state.active):
            return
        model = application_model(look(policy, state, now_s))
        if model is not None:
            self._next_s = now_s + EVERY_S
            self._store.save_state(self._run, KEY, to_json(model))


def from_store(store: Store, run: str, where: str) -> ApplicationModel:
    value = store.load_state(run, KEY)
    model = None if value is None else from_json(value)
    if model is None:
        raise ConfigError(f"run {run!r} has no model", where=where, fix="let its manager see some minutes of batches")
    return model


def from_scenario(scenario: Scenario, seed: int | None = None) -> ApplicationModel:
    """What can be learned from watching the scenario to its end without doing anything."""
    states: list[tuple[State, float]] = []

    def keep(_trace: Trace, state: State, engine: SimulatedEngine) -> None:
        states[:] = [(state, engine.now_s)]

    simulate(scenario, _WATCHING, seed=seed, mode="observe", on_step=keep)
    state, now_s = states[0]
    return _model_of(state, now_s, scenario.name)


def from_recording(recorded: RecordedRun, where: str) -> ApplicationModel:
    """What Spark's event log tells, batch by batch."""
    state, now_s = State(mode="observe"), 0.0
    before: tuple[int, dict[str, int]] | None = None
    for earlier, batch in pairwise((None, *recorded.batches)):
        assert batch is not None
        observation = _observation(recorded, batch, earlier)
        shape = len(observation.workers.ids), {name: tasks.instances for name, tasks in observation.tasks.items()}
        events: list[Event] = [Observed(observation)]
        now_s = observation.at_s
        if shape[1] and shape != before:
            before = shape
            events.insert(0, _described(recorded, *shape, batch.started_s))
        state, _, _ = step(_WATCHING, state, events, now_s)
    return _model_of(state, now_s, where)


def arrivals(recorded: RecordedRun) -> tuple[Array, Array]:
    """The middle of each batch, and how many rows a second arrived for it."""
    spans = [(batch, before, _span_s(batch, before)) for before, batch in pairwise((None, *recorded.batches)) if batch]
    middle_s = [batch.ended_s - span_s / 2 for batch, _, span_s in spans]
    return np.array(middle_s), np.array([_arrival_per_s(*each) for each in spans])


def arrivals_apart(recorded: RecordedRun) -> dict[str, Array]:
    """The same rates of each source, where there are several."""
    names = dict.fromkeys(recorded.sources)
    if len(names) < 2:
        return {}
    of_one = {name: tuple(_only(batch, recorded.sources, name) for batch in recorded.batches) for name in names}
    return {name: arrivals(replace(recorded, batches=batches))[1] for name, batches in of_one.items()}


def _only(batch: RecordedBatch, names: Sequence[str], name: str) -> RecordedBatch:
    """As if it had read that source alone; unknown if the batch had others than the run."""
    if len(batch.sources) != len(names):
        return replace(batch, rows=NAN, arrived_rows=NAN)
    mine = [source for source, other in zip(batch.sources, names, strict=True) if other == name]
    return replace(batch, rows=sum(s.rows for s in mine), arrived_rows=sum(s.arrived_rows for s in mine))


def _model_of(state: State, now_s: float, where: str) -> ApplicationModel:
    model = application_model(look(_WATCHING, state, now_s))
    if model is None:
        raise ConfigError(TOO_LITTLE, where=where, fix="give it a longer one, with rows in most of its batches")
    return model


def _described(recorded: RecordedRun, executors: int, tasks: dict[str, int], at_s: float) -> EngineChanged:
    components = tuple(_component(each) for each in recorded.components)
    values: dict[Knob, Value] = {EXECUTORS_KNOB: executors}
    knobs = {EXECUTORS_KNOB: KnobSpec(1, _MOST_EXECUTORS, apply_s=_START_S, cost=1.0)}
    trigger = Knob(TRIGGER_S, recorded.query)
    values[trigger] = recorded_load.trigger_s(recorded.batches)
    knobs[trigger] = KnobSpec(0, 3600, live=False, apply_s=_RESTART_S)
    for component in components:
        if component.partitions is not None and component.name in tasks:
            values[component.partitions] = tasks[component.name]
            knobs[component.partitions] = KnobSpec(1, _MOST_PARTITIONS, live=False, apply_s=_RESTART_S)
    return EngineChanged(Topology(components), Configuration(values), Capabilities(knobs), at_s, "as recorded")


def _component(recorded: RecordedComponent) -> Component:
    source = not recorded.inputs
    kind = SOURCE_PARTITIONS if source else STATE_PARTITIONS if recorded.stateful else PARALLELISM
    knob = Knob(kind, "main" if kind == STATE_PARTITIONS else recorded.name)
    return Component(
        recorded.name,
        "source" if source else "operator",
        EXECUTORS_KNOB,
        recorded.inputs,
        keyed=recorded.keyed,
        partitions=knob,
    )


def _observation(recorded: RecordedRun, batch: RecordedBatch, before: RecordedBatch | None) -> Observation:
    up = [e for e in recorded.executors if e.added_s <= batch.ended_s and e.removed_s > batch.started_s]
    ids = [executor.id for executor in up]
    span_s = _span_s(batch, before)
    sources = [component.name for component in recorded.components if not component.inputs] or ["source"]
    keys = [float(np.nansum(tasks.keys)) for tasks in batch.tasks.values() if np.isfinite(tasks.keys).any()]
    flow = FlowSample(
        sources[0],
        rows=batch.rows,
        seconds=batch.seconds,
        trigger_s=recorded_load.trigger_s(recorded.batches),
        arrival_per_s=_arrival_per_s(batch, before, span_s),
        pending_rows=batch.pending_rows,
        updated_keys=sum(keys) if keys else NAN,
    )
    return Observation(
        at_s=batch.ended_s,
        span_s=span_s,
        batch=batch.number,
        flows=(flow,),
        tasks={name: _sample(tasks, ids) for name, tasks in batch.tasks.items()},
        workers=WorkerSample(
            tuple(ids),
            tuple(executor.host for executor in up),
            np.array([float(executor.slots) for executor in up]),
            np.ones(len(up), dtype=np.bool_),
        ),
        run=batch.run,
    )


def _span_s(batch: RecordedBatch, before: RecordedBatch | None) -> float:
    """Since the one before it ended."""
    began_s = before.ended_s if before is not None else batch.started_s
    return max(batch.ended_s - began_s, batch.seconds, 1e-3)


def _arrival_per_s(batch: RecordedBatch, before: RecordedBatch | None, span_s: float) -> float:
    """Where the source does not tell what arrived, it is what was taken."""
    if before is None or not (math.isfinite(batch.arrived_rows) and math.isfinite(before.arrived_rows)):
        return batch.rows / span_s
    passed_s = batch.started_s - before.started_s
    arrived = batch.arrived_rows - before.arrived_rows
    return arrived / passed_s if passed_s > 0 and arrived >= 0 else NAN


def _sample(tasks: RecordedTasks, ids: Sequence[str]) -> TaskSample:
    known = {identity: number for number, identity in enumerate(ids)}
    unknown = np.full(len(tasks.rows), NAN)
    return TaskSample(
        rows=tasks.rows,
        run_s=tasks.seconds,
        rows_out=tasks.rows_out,
        pending_rows=unknown,
        pressured_s=unknown,
        finish_s=tasks.finish_s - float(np.min(tasks.start_s)),
        worker=np.array([known.get(str(executor), -1) for executor in tasks.executor], dtype=np.int64),
    )
