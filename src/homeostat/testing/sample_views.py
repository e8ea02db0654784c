"""Views that every plug-in must handle: healthy and sick applications, and measurements with little in them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Observation, TaskSample
from homeostat.core.topology import Topology
from homeostat.core.view import View
from homeostat.testing.builders import TASK_COLUMNS, blanked, instances, observations, view_of

_SPAN_S = 10.0
_GARBAGE = (-1.0, -1e300, 1e300, np.inf, -np.inf, NAN)
_OBJECTIVE = Objective(throughput_per_s=500.0, lag_s=5.0, cost_limit=6.0)
_SHRUNK_BY = {
    "idle": ("rows", "run_s", "arrival_per_s", "pending_rows", "pressured_s"),
    "idle batches": ("rows", "run_s", "finish_s", "seconds", "arrival_per_s", "pending_rows"),
}


@cache
def sample_views() -> Mapping[str, View]:
    """Views by name: dataflows and micro-batches with components lines, split and count, in all kinds of trouble."""
    measurements = _measurements()
    views = {name: view_of(observed) for name, observed in measurements.items()}
    for name in ("overloaded", "overloaded batches", "garbage"):
        views[f"{name}, with objectives"] = view_of(measurements[name], objective=_OBJECTIVE)
    shape = views["overloaded"].topology
    strange = [replace(o, tasks={"stranger": o.tasks["split"]}) for o in measurements["overloaded"]]
    views["only unknown components"] = view_of(strange, topology=shape)
    views["before the first observation"] = view_of((), topology=shape)
    views["without components"] = view_of((), topology=Topology(()))
    return views


@cache
def idle_views() -> Mapping[str, View]:
    """Idle applications of which every metric is known."""
    return {name: view_of(_measurements()[name]) for name in _SHRUNK_BY}


@cache
def unknown_views() -> Mapping[str, View]:
    """Applications of which no metric is known."""
    views = {}
    for name in _SHRUNK_BY:
        observed, shape = _measurements()[name], view_of(_measurements()[name]).topology
        views[f"{name}, all metrics missing"] = view_of(blanked(observed), topology=shape)
        views[f"{name}, flows and tasks missing"] = view_of(
            [replace(o, flows=(), tasks={}) for o in observed], topology=shape
        )
    return views


@cache
def partly_unknown_views() -> Mapping[str, View]:
    """Idle applications of which one metric was missing lately, so that nothing may be taken away."""
    views = {}
    for name, columns in _SHRUNK_BY.items():
        observed = _measurements()[name]
        for column in columns:
            views[f"{name}, {column} missing"] = view_of(blanked(observed, column, last=3))
        without = [*observed[:-2], *(replace(o, tasks={}) for o in observed[-2:])]
        views[f"{name}, tasks missing"] = view_of(without, topology=view_of(observed).topology)
        views[f"{name}, a measurement missing"] = view_of([*observed[:-4], *observed[-3:]])
    return views


@cache
def _measurements() -> Mapping[str, tuple[Observation, ...]]:
    behind = (40.0, 0.0, 0.0, 0.0)
    healthy = _chain(20, 150.0, split=[(750.0, 7.5)] * 2)
    overload = _chain(20, 400.0, split=[(1000.0, 10.0)] * 2, pressured_s=9.0, pending=20.0)
    slow = _chain(20, 150.0, split=[(200.0, 10.0), *[(433.0, 4.3)] * 3], pending=behind)
    skew = _chain(20, 150.0, split=[(1000.0, 10.0), *[(167.0, 1.67)] * 3], pending=behind)
    dataflow = {
        "healthy": healthy,
        "one observation": healthy[:1],
        "one instance": _chain(20, 75.0, split=[(750.0, 7.5)]),
        "overloaded": overload,
        "idle": _chain(40, 20.0, split=[(50.0, 0.5)] * 4),
        "a slow instance": slow,
        "skewed": skew,
        "nothing arrives": _chain(20, 0.0, split=[(0.0, 0.0)] * 2),
        "half of the metrics unknown": _damage(overload, (NAN,)),
        "garbage": _damage(overload, _GARBAGE),
        "instances come and go": (*healthy, *_later(slow, 20), *_later(healthy[:3], 40)),
        "a lost worker": _lose_instances(slow),
        "no tasks": tuple(replace(o, tasks={}) for o in healthy),
    }
    return dataflow | _batches()


def _batches() -> dict[str, tuple[Observation, ...]]:
    healthy = _micro(20, 150.0, seconds=8.0, finish_s=(3.5, 3.6, 3.4, 3.5))
    uneven = (10.0, 1.5, 1.5, 1.5)
    return {
        "healthy batches": healthy,
        "one batch": healthy[:1],
        "overloaded batches": _micro(20, 400.0, seconds=14.0, finish_s=[6.0] * 4 + [12.0] * 4, run_s=6.0, pending=30.0),
        "idle batches": _micro(40, 20.0, seconds=1.5, finish_s=(0.4, 0.4, 0.4, 0.4)),
        "a slow executor": _micro(20, 150.0, seconds=14.0, finish_s=uneven),
        "skewed batches": _micro(20, 150.0, seconds=14.0, finish_s=uneven, rows=(1000, 167, 167, 166)),
        "empty batches": _micro(20, 0.0, seconds=0.2, finish_s=None),
        "garbage batches": _damage(healthy, _GARBAGE),
    }


def _chain(
    count: int,
    arrival_per_s: float,
    *,
    split: Sequence[tuple[float, float]],
    pressured_s: float = 0.0,
    pending: float | Sequence[float] = 0.0,
) -> tuple[Observation, ...]:
    """A source, a stage whose instances processed (rows, run_s), and one behind it. `pending` is rows per second."""
    rows, run_s = [instance_rows for instance_rows, _ in split], [busy for _, busy in split]
    behind = [sum(rows) / 2.0] * 2

    def tasks(number: int) -> Mapping[str, TaskSample]:
        waiting = np.broadcast_to(np.asarray(pending) * _SPAN_S * (number + 1), (len(rows),))
        return {
            "lines": instances(sum(rows), sum(rows) / 1000.0),
            "split": instances(rows, run_s, pending_rows=waiting, pressured_s=pressured_s),
            "count": instances(behind, [0.0075 * each for each in behind]),
        }

    refused_per_s = max(0.0, arrival_per_s - sum(rows) / _SPAN_S)
    waiting_rows = [refused_per_s * _SPAN_S * (number + 1) for number in range(count)]
    return observations(count, tasks, arrival_per_s=arrival_per_s, pending_rows=waiting_rows)


def _micro(
    count: int,
    arrival_per_s: float,
    *,
    seconds: float,
    finish_s: Sequence[float] | None,
    run_s: float | None = None,
    rows: Sequence[float] | None = None,
    pending: float = 0.0,
) -> tuple[Observation, ...]:
    """Batches of two stages on four executors; without `finish_s` they have no rows and no tasks."""
    total = arrival_per_s * _SPAN_S
    tasks: dict[str, TaskSample] = {}
    if finish_s is not None:
        share = rows if rows is not None else [total / len(finish_s)] * len(finish_s)
        tasks = {
            "lines": instances([total / 4.0] * 4, 0.4, finish_s=0.4),
            "count": instances(share, finish_s if run_s is None else run_s, finish_s=finish_s),
        }
    return observations(
        count,
        tasks,
        executors=4,
        arrival_per_s=arrival_per_s,
        rows=total,
        seconds=seconds,
        trigger_s=_SPAN_S,
        pending_rows=[pending * _SPAN_S * (number + 1) for number in range(count)],
    )


def _later(observed: Sequence[Observation], by: int) -> tuple[Observation, ...]:
    return tuple(replace(o, at_s=o.at_s + by * _SPAN_S, batch=o.batch + by) for o in observed)


def _lose_instances(observed: Sequence[Observation]) -> tuple[Observation, ...]:
    alive = np.array([number != 1 for number in range(len(observed[-1].workers.ids))])
    return tuple(replace(o, workers=replace(o.workers, alive=alive)) for o in observed)


def _damage(observed: Sequence[Observation], nonsense: Sequence[float]) -> tuple[Observation, ...]:
    """Replaces every other number, a different half each time."""
    rng = np.random.default_rng(7)

    def task(sample: TaskSample) -> TaskSample:
        columns: dict[str, Any] = {}
        for column in TASK_COLUMNS:
            bad = rng.choice(np.array(nonsense), sample.instances)
            columns[column] = np.where(rng.random(sample.instances) < 0.5, bad, getattr(sample, column))
        return replace(sample, **columns)

    return tuple(replace(o, tasks={name: task(sample) for name, sample in o.tasks.items()}) for o in observed)
