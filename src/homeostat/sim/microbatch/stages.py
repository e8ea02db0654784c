"""The work of a batch's stages, without noise: rows, updated keys and seconds of every task."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.microbatch.task_scheduling import makespan_bounds_s, makespan_s
from homeostat.sim.routing import shares
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec


@dataclass(frozen=True, slots=True)
class Routing:
    """How a stage's rows are divided into partitions at the moment."""

    partitions: int
    spread: int = 1
    hot_share: float = 0.0
    stride: int = 0
    turn: int = 0


@dataclass(frozen=True, slots=True)
class Work:
    """Columns with one entry per task."""

    rows: Array
    keys: Array
    seconds: Array


def stage_rows(
    components: tuple[ComponentSpec, ...], taken_rows: Mapping[str, int], partitions: Mapping[str, int]
) -> dict[str, int]:
    """The rows of each stage if the sources give `taken_rows` and each stage's rows are even over its partitions."""
    rows: dict[str, int] = {}
    sent_rows: dict[str, float] = {}
    for component in components:
        name = component.name
        rows[name] = taken_rows.get(name, 0) + round(sum(sent_rows[each] for each in component.inputs))
        sent_rows[name] = partitions[name] * float(component.rows_out(np.array(rows[name] / partitions[name])))
    return rows


def work(spec: ComponentSpec, rows: int, routing: Routing, busy: Array, combine_overhead: float = 0.0) -> Work:
    """Divide the rows into partitions, and compute how long each takes while `busy` executors have a task."""
    without_start = rows_work(spec, rows, routing, combine_overhead)
    return Work(without_start.rows, without_start.keys, start_s(spec, busy) + without_start.seconds)


def rows_work(spec: ComponentSpec, rows: int, routing: Routing, combine_overhead: float) -> Work:
    """The work without the start of the tasks."""
    share = shares(spec, routing.partitions, routing.spread, routing.hot_share, routing.stride, routing.turn)
    edges = np.floor(share.cumsum() * rows + 0.5)
    edges[-1] = rows
    per_task = edges.copy()
    per_task[1:] -= edges[:-1]
    keys = np.zeros(routing.partitions)
    if spec.stateful or spec.key_s > 0:
        # A hash spreads the keys evenly over the partitions that get rows, even if the rows are uneven.
        even = updated_keys(spec, rows, routing) / max(1, int(np.count_nonzero(share)))
        keys = np.minimum(per_task, even)
    combine = 1 + combine_overhead if routing.spread > 1 else 1.0
    return Work(per_task, keys, (per_task / spec.rate_per_s + spec.key_s * keys) * combine)


def start_s(spec: ComponentSpec, busy: Array) -> Array:
    return np.asarray(spec.task_s * crowding_factor(spec.crowding, busy))


def crowding_factor(crowding: float, busy: float | Array) -> float | Array:
    """The factor on the cost of starting a task: each other busy executor adds the share `crowding` of the cost."""
    return 1 + crowding * (busy - 1)


def busy_executors(executors: int, tasks: int, slots: int) -> Array:
    """The number of busy executors while each task runs: all of them, except in a last wave too small for all slots."""
    at_once = max(1, executors * slots)
    last = tasks % at_once
    busy = np.full(tasks, max(1.0, float(executors)))
    busy[tasks - last :] = max(1.0, last / slots)
    return busy


def updated_keys(spec: ComponentSpec, rows: float, routing: Routing) -> float:
    """The expected number of different keys among this many rows. A spread key counts once per part."""
    salts = min(routing.spread, routing.partitions)
    rest = rows * (1 - routing.hot_share)
    hot = min(1.0, rows * routing.hot_share)
    if spec.zipf == 0:
        return salts * float(hot - spec.keys * np.expm1(-rest / spec.keys / salts))
    return salts * float(hot - np.expm1(-rest / salts * _weights(spec.keys, spec.zipf)).sum())


@lru_cache(maxsize=64)
def _weights(keys: int, zipf: float) -> Array:
    weights: Array = np.arange(1, keys + 1, dtype=np.float64) ** -zipf
    weights /= weights.sum()
    weights.setflags(write=False)
    return weights


@lru_cache(maxsize=4096)
def needed_executors(
    components: tuple[ComponentSpec, ...],
    engine: MicrobatchSpec,
    routings: tuple[Routing, ...],
    rate_per_s: float,
    interval_s: float,
) -> int:
    """The fewest executors whose noise-free batch of one interval's rows ends within the interval."""
    sources = [component.name for component in components if component.kind == "source"]
    rows = stage_rows(
        components,
        {name: round(rate_per_s * interval_s / len(sources)) for name in sources},
        {component.name: routing.partitions for component, routing in zip(components, routings, strict=True)},
    )
    limit_s = interval_s - engine.driver_s - engine.commit_s + 1e-9

    # Only the starts of the tasks depend on the number of executors.
    rows_s = [
        rows_work(component, rows[component.name], routing, engine.combine_overhead).seconds
        for component, routing in zip(components, routings, strict=True)
    ]

    def seconds(component: ComponentSpec, for_rows_s: Array, executors: int) -> Array:
        return start_s(component, busy_executors(executors, len(for_rows_s), engine.slots)) + for_rows_s

    def enough(executors: int) -> bool:
        slots = executors * engine.slots
        stages = [seconds(*each, executors) for each in zip(components, rows_s, strict=True)]
        bounds = [makespan_bounds_s(stage, slots) for stage in stages]
        if sum(low for low, _ in bounds) > limit_s:
            return False
        if sum(high for _, high in bounds) <= limit_s:
            return True
        return sum(makespan_s(stage, slots) for stage in stages) <= limit_s

    low, high = 1, engine.max_executors
    while low < high:
        middle = (low + high) // 2
        low, high = (low, middle) if enough(middle) else (middle + 1, high)
    return low
