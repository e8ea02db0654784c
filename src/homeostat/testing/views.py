"""Views that every plug-in must get along with: healthy and sick applications, and measurements that are hardly any."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import numpy as np

from homeostat.core.objective import Objective
from homeostat.core.observation import NAN, Observation, TaskSample
from homeostat.core.topology import Topology
from homeostat.core.view import View
from homeostat.testing.builders import blanked, instances, observations, view_of

_SPAN_S = 10.0
_GARBAGE = (-1.0, -1e300, 1e300, np.inf, -np.inf, NAN)
_WANTED = Objective(throughput_per_s=500.0, lag_s=5.0, cost_limit=6.0)


def sample_views() -> dict[str, View]:
    """By name. Each call makes new ones."""
    seen = {**_dataflows(), **_batches()}
    views = {name: view_of(observed) for name, observed in seen.items()}
    views |= {f"{name}, with objectives": replace(view, objective=_WANTED) for name, view in views.items()}
    views["before the first observation"] = view_of((), topology=views["healthy"].topology)
    views["without components"] = view_of((), topology=Topology(()))
    strange = tuple(replace(o, tasks={"stranger": o.tasks["split"]}) for o in seen["overloaded"])
    views["only unknown components"] = view_of(strange, topology=views["overloaded"].topology)
    return views


def unknown_views() -> dict[str, View]:
    """Nothing is known but that time passes."""
    seen = {**_dataflows(), **_batches()}
    return {
        "a dataflow without metrics": view_of(blanked(seen["idle"])),
        "batches without metrics": view_of(
            blanked(seen["idle batches"]), topology=view_of(seen["idle batches"]).topology
        ),
        "without flows and tasks": view_of(
            [replace(o, flows=(), tasks={}) for o in seen["idle"]], topology=view_of(seen["idle"]).topology
        ),
    }


def partly_unknown_views() -> dict[str, View]:
    """Something could be given back, if it were not for a metric that is missing."""
    views = {}
    for kind, columns in {
        "idle": ("rows", "run_s", "arrival_per_s", "pending_rows", "pressured_s"),
        "idle batches": ("rows", "run_s", "finish_s", "seconds", "arrival_per_s", "pending_rows"),
    }.items():
        observed = {**_dataflows(), **_batches()}[kind]
        for column in columns:
            views[f"{kind} without {column}"] = view_of(blanked(observed, column, last=3))
        shape = view_of(observed).topology
        views[f"{kind} without tasks"] = view_of(
            [*observed[:-2], *(replace(o, tasks={}) for o in observed[-2:])], topology=shape
        )
    return views


def idle_views() -> dict[str, View]:
    """Less would do, and all of it is known."""
    return {"idle": view_of(_dataflows()["idle"]), "idle batches": view_of(_batches()["idle batches"])}


def _dataflows() -> dict[str, tuple[Observation, ...]]:
    overloaded = _chain(30, 400.0, split=[_worked(1000.0, 10.0)] * 2, pressured_s=9.0, pending=20.0)
    slow = _chain(30, 150.0, split=[_worked(200.0, 10.0), *[_worked(433.0, 4.3)] * 3], pending=(40.0, 0.0, 0.0, 0.0))
    skewed = _chain(
        30, 150.0, split=[_worked(1000.0, 10.0), *[_worked(167.0, 1.67)] * 3], pending=(40.0, 0.0, 0.0, 0.0)
    )
    healthy = _chain(30, 150.0, split=[_worked(750.0, 7.5)] * 2)
    return {
        "healthy": healthy,
        "one observation": healthy[:1],
        "one instance": _chain(30, 75.0, split=[_worked(750.0, 7.5)]),
        "overloaded": overloaded,
        "idle": _chain(60, 20.0, split=[_worked(50.0, 0.5)] * 4),
        "a slow instance": slow,
        "skewed": skewed,
        "nothing arrives": _chain(30, 0.0, split=[_worked(0.0, 0.0)] * 2),
        "half of the metrics unknown": _damaged(overloaded, (NAN,)),
        "garbage": _damaged(overloaded, _GARBAGE),
        "instances come and go": (*healthy, *_later(slow, 300.0), *_later(healthy[:3], 600.0)),
        "a lost worker": _lost(slow),
        "no tasks": tuple(replace(o, tasks={}) for o in healthy),
    }


def _batches() -> dict[str, tuple[Observation, ...]]:
    healthy = _micro(30, 150.0, seconds=8.0, finish_s=(3.5, 3.6, 3.4, 3.5))
    return {
        "healthy batches": healthy,
        "one batch": healthy[:1],
        "overloaded batches": _micro(30, 400.0, seconds=14.0, finish_s=(6.6, 6.5, 6.4, 6.6), pending=30.0),
        "idle batches": _micro(60, 20.0, seconds=1.5, finish_s=(0.4, 0.4, 0.4, 0.4)),
        "a slow executor": _micro(30, 150.0, seconds=14.0, finish_s=(10.0, 2.5, 2.5, 2.5)),
        "skewed batches": _micro(30, 150.0, seconds=14.0, finish_s=(10.0, 1.5, 1.5, 1.5), rows=(1000, 167, 167, 166)),
        "empty batches": _micro(30, 0.0, seconds=0.2, finish_s=None),
        "garbage batches": _damaged(healthy, _GARBAGE),
    }


def _worked(rows: float, run_s: float) -> tuple[float, float]:
    return rows, run_s


def _chain(
    count: int,
    arrival_per_s: float,
    *,
    split: Sequence[tuple[float, float]],
    pressured_s: float = 0.0,
    pending: float | Sequence[float] = 0.0,
) -> tuple[Observation, ...]:
    """A source, a stage with these instances, and one behind it. `pending` grows by so much per second."""
    rows = [taken for taken, _ in split]
    run_s = [busy for _, busy in split]
    behind = [sum(rows) / 2.0] * 2

    def tasks(number: int) -> Mapping[str, TaskSample]:
        waiting = np.broadcast_to(np.asarray(pending) * _SPAN_S * (number + 1), (len(rows),))
        return {
            "lines": instances(sum(rows), sum(rows) / 1000.0),
            "split": instances(rows, run_s, pending_rows=waiting, pressured_s=pressured_s),
            "count": instances(behind, [0.005 * each for each in behind]),
        }

    refused = max(0.0, arrival_per_s - sum(rows) / _SPAN_S)
    waiting_rows = refused * _SPAN_S * np.arange(1, count + 1)
    return observations(count, tasks, arrival_per_s=arrival_per_s, pending_rows=waiting_rows)


def _micro(
    count: int,
    arrival_per_s: float,
    *,
    seconds: float,
    finish_s: Sequence[float] | None,
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
            "count": instances(share, finish_s, finish_s=finish_s),
        }
    return observations(
        count,
        tasks,
        executors=4,
        arrival_per_s=arrival_per_s,
        rows=total,
        seconds=seconds,
        trigger_s=_SPAN_S,
        pending_rows=pending * _SPAN_S * np.arange(1, count + 1),
    )


def _later(observed: Sequence[Observation], by_s: float) -> tuple[Observation, ...]:
    return tuple(replace(o, at_s=o.at_s + by_s, batch=o.batch + int(by_s)) for o in observed)


def _lost(observed: Sequence[Observation]) -> tuple[Observation, ...]:
    alive = np.array([number != 1 for number in range(len(observed[-1].workers.ids))])
    return tuple(replace(o, workers=replace(o.workers, alive=alive)) for o in observed)


def _damaged(observed: Sequence[Observation], nonsense: Sequence[float]) -> tuple[Observation, ...]:
    """Every other number is replaced, another half of them each time."""
    rng = np.random.default_rng(7)

    def damage(values: np.ndarray) -> np.ndarray:
        return np.where(rng.random(len(values)) < 0.5, rng.choice(np.array(nonsense), len(values)), values)

    def task(sample: TaskSample) -> TaskSample:
        columns = ("rows", "run_s", "rows_out", "pending_rows", "pressured_s", "finish_s")
        return replace(sample, **{column: damage(getattr(sample, column)) for column in columns})

    return tuple(replace(o, tasks={name: task(sample) for name, sample in o.tasks.items()}) for o in observed)


ViewMaker = Callable[[], dict[str, View]]
