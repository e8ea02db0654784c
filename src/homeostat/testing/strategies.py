"""Hypothesis strategies for measurements that are missing, wrong or absurd. Requires hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from typing import Any

import numpy as np
from hypothesis import strategies as st

from homeostat.core.observation import NAN, FlowSample, Observation, StateLimits, StateSample, TaskSample, WorkerSample
from homeostat.testing.builders import FLOW_COLUMNS, TASK_COLUMNS

_ABSURD = st.sampled_from([NAN, np.inf, -np.inf, -1.0, 0.0, 1e-300, 1e300])
_NUMBERS = _ABSURD | st.floats(0.0, 2000.0) | st.floats()
_STATE_COLUMNS = tuple(field.name for field in fields(StateSample) if field.type == "float")
_STATES = st.builds(
    StateSample,
    st.just("stateStoreSave"),
    st.sampled_from(["rocksdb", "hdfs", ""]),
    limits=st.builds(StateLimits, _NUMBERS, st.booleans(), _NUMBERS, _NUMBERS),
    **dict.fromkeys(_STATE_COLUMNS, _NUMBERS),
)


def garbage(components: Sequence[str], most: int = 12) -> st.SearchStrategy[tuple[Observation, ...]]:
    """Measurements that mean nothing: any number anywhere, unknown components, columns of unequal length."""
    names = st.sampled_from([*components, "stranger"])
    tasks = st.dictionaries(names, _task_samples(), max_size=len(components) + 1)
    flows = st.lists(st.builds(_flow, names, st.lists(_NUMBERS, min_size=7, max_size=7)), max_size=2).map(tuple)
    spans = st.sampled_from([10.0, 10.0, 10.0, 0.1, 300.0, 0.0, -5.0, NAN, np.inf])
    one = st.builds(
        Observation,
        at_s=st.just(0.0),
        span_s=spans,
        batch=st.just(0),
        flows=flows,
        tasks=tasks,
        workers=st.integers(0, 4).map(_workers),
        states=st.dictionaries(st.sampled_from(["stateStoreSave", "dedupe"]), _STATES, max_size=2),
    )
    return st.lists(one, max_size=most).map(_in_a_row)


@st.composite
def damaged_observations(
    draw: st.DrawFn, observed: Sequence[Observation], *, wrong: bool = False, drop: bool = True
) -> tuple[Observation, ...]:
    """The same measurements with columns, instances or whole ticks lost; with `wrong`, with absurd values instead."""
    columns = draw(st.sets(st.sampled_from(sorted({*TASK_COLUMNS, *FLOW_COLUMNS})), min_size=1))
    ticks = draw(st.sets(st.integers(0, len(observed) - 1), min_size=1))
    instance = draw(st.none() | st.integers(0, 3))
    component = draw(st.sampled_from(["", *observed[-1].tasks]))
    value = draw(_ABSURD) if wrong else NAN
    dropped_numbers = draw(st.sets(st.integers(0, len(observed) - 1), max_size=3)) if drop else set()
    return tuple(
        _hit(one, columns, instance, component, value) if number in ticks else one
        for number, one in enumerate(observed)
        if number not in dropped_numbers
    )


def _hit(
    observation: Observation, columns: set[str], instance: int | None, component: str, value: float
) -> Observation:
    tasks = dict(observation.tasks)
    for name, sample in observation.tasks.items():
        if component in ("", name):
            changes: dict[str, Any] = {}
            for column in columns & set(TASK_COLUMNS):
                values = getattr(sample, column).copy()
                values[instance if instance is not None and instance < len(values) else slice(None)] = value
                changes[column] = values
            tasks[name] = replace(sample, **changes)
    numbers: dict[str, Any] = dict.fromkeys(columns & set(FLOW_COLUMNS), value)
    flows = tuple(replace(f, **numbers) if component in ("", f.source) else f for f in observation.flows)
    return replace(observation, tasks=tasks, flows=flows)


def _task_samples() -> st.SearchStrategy[TaskSample]:
    column = st.lists(_NUMBERS, max_size=4)
    even = st.integers(0, 4).flatmap(lambda n: st.tuples(*[st.lists(_NUMBERS, min_size=n, max_size=n)] * 6))
    ragged = st.tuples(*[column] * 6)
    return st.builds(_sample, even | even | even | ragged, st.integers(-2, 6))


def _sample(columns: tuple[list[float], ...], worker: int) -> TaskSample:
    rows, run_s, rows_out, pending, pressured_s, finish_s = (np.array(column, dtype=np.float64) for column in columns)
    workers = np.full(len(rows), worker, dtype=np.int64)
    return TaskSample(rows, run_s, rows_out, pending, pressured_s, finish_s, workers)


def _flow(source: str, numbers: Sequence[float]) -> FlowSample:
    rows, seconds, trigger_s, arrival_per_s, pending_rows, keys, gap_s = numbers
    flow = FlowSample(source, "main", rows, seconds, trigger_s, arrival_per_s, pending_rows, keys)
    return replace(flow, watermark_gap_s=gap_s)


def _workers(count: int) -> WorkerSample:
    ids = tuple(f"worker-{number}" for number in range(count))
    alive = np.array([number % 2 == 0 for number in range(count)], dtype=np.bool_)
    return WorkerSample(ids, ids, np.ones(count), alive)


def _in_a_row(observed: Sequence[Observation]) -> tuple[Observation, ...]:
    return tuple(replace(one, at_s=10.0 * (number + 1), batch=number) for number, one in enumerate(observed))
