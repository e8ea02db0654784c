"""The performance model of an application, built from a recorded run."""

from __future__ import annotations

from collections.abc import Sequence
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
from homeostat.core.cycle import step
from homeostat.core.events import EngineChanged, Event, Observed
from homeostat.core.loop_state import State
from homeostat.core.observation import NAN, FlowSample, Observation, TaskSample, WorkerSample
from homeostat.core.topology import Component, Topology
from homeostat.log_views.watched_model import WATCHING, model_of
from homeostat.models.application_model import ApplicationModel
from homeostat.recorded_data.arrivals import arrival_per_s, span_s
from homeostat.recorded_data.batch_limits import trigger_s
from homeostat.recorded_data.run import RecordedBatch, RecordedComponent, RecordedRun, RecordedTasks

# An event log does not say what the cluster would allow or how long changes take. These values only bound what
# `plan` and `whatif` may propose; the times are usual ones for a small cluster. All chosen by hand.
MOST_EXECUTORS = 1_000
MOST_PARTITIONS = 10_000
LONGEST_TRIGGER_S = 3600
EXECUTOR_START_S, RESTART_S = 15.0, 30.0


def from_recording(recorded: RecordedRun, where: str) -> ApplicationModel:
    """Replay the recorded batches through a loop that only observes, and fit a model to what it saw."""
    state, now_s = State(mode="observe"), 0.0
    shape_before: tuple[int, dict[str, int]] | None = None
    for earlier, batch in pairwise((None, *recorded.batches)):
        assert batch is not None
        observation = _observation(recorded, batch, earlier)
        shape = len(observation.workers.ids), {name: tasks.instances for name, tasks in observation.tasks.items()}
        events: list[Event] = [Observed(observation)]
        now_s = observation.at_s
        if shape[1] and shape != shape_before:
            shape_before = shape
            events.insert(0, _describe(recorded, *shape, batch.started_s))
        state, _, _ = step(WATCHING, state, events, now_s)
    return model_of(state, now_s, where)


def _describe(recorded: RecordedRun, executors: int, tasks: dict[str, int], at_s: float) -> EngineChanged:
    components = tuple(_component(each) for each in recorded.components)
    values: dict[Knob, Value] = {EXECUTORS_KNOB: executors}
    knobs = {EXECUTORS_KNOB: KnobSpec(1, MOST_EXECUTORS, apply_s=EXECUTOR_START_S, cost=1.0)}
    trigger = Knob(TRIGGER_S, recorded.query)
    values[trigger] = trigger_s(recorded.batches)
    knobs[trigger] = KnobSpec(0, LONGEST_TRIGGER_S, live=False, apply_s=RESTART_S)
    for component in components:
        if component.partitions is not None and component.name in tasks:
            values[component.partitions] = tasks[component.name]
            knobs[component.partitions] = KnobSpec(1, MOST_PARTITIONS, live=False, apply_s=RESTART_S)
    return EngineChanged(Topology(components), Configuration(values), Capabilities(knobs), at_s, "as recorded")


def _component(recorded: RecordedComponent) -> Component:
    is_source = not recorded.inputs
    kind = SOURCE_PARTITIONS if is_source else STATE_PARTITIONS if recorded.stateful else PARALLELISM
    knob = Knob(kind, "main" if kind == STATE_PARTITIONS else recorded.name)
    return Component(
        recorded.name,
        "source" if is_source else "operator",
        EXECUTORS_KNOB,
        recorded.inputs,
        keyed=recorded.keyed,
        partitions=knob,
    )


def _observation(recorded: RecordedRun, batch: RecordedBatch, before: RecordedBatch | None) -> Observation:
    up = [e for e in recorded.executors if e.added_s <= batch.ended_s and e.removed_s > batch.started_s]
    ids = [executor.id for executor in up]
    batch_span_s = span_s(batch, before)
    sources = [component.name for component in recorded.components if not component.inputs] or ["source"]
    keys = [float(np.nansum(tasks.keys)) for tasks in batch.tasks.values() if np.isfinite(tasks.keys).any()]
    flow = FlowSample(
        sources[0],
        rows=batch.rows,
        seconds=batch.seconds,
        trigger_s=trigger_s(recorded.batches),
        arrival_per_s=arrival_per_s(batch, before, batch_span_s),
        pending_rows=batch.pending_rows,
        updated_keys=sum(keys) if keys else NAN,
    )
    return Observation(
        at_s=batch.ended_s,
        span_s=batch_span_s,
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


def _sample(tasks: RecordedTasks, executor_ids: Sequence[str]) -> TaskSample:
    worker_numbers = {identity: number for number, identity in enumerate(executor_ids)}
    unknown = np.full(len(tasks.rows), NAN)
    return TaskSample(
        rows=tasks.rows,
        run_s=tasks.seconds,
        rows_out=tasks.rows_out,
        pending_rows=unknown,
        pressured_s=unknown,
        finish_s=tasks.finish_s - float(np.min(tasks.start_s)),
        worker=np.array([worker_numbers.get(str(executor), -1) for executor in tasks.executor], dtype=np.int64),
    )
