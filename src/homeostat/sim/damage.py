"""Removes measurements, or replaces them by nonsense."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import fields, replace
from math import isnan
from typing import Any

import numpy as np

from homeostat.core.observation import (
    Array,
    DriverSample,
    FileSample,
    FlowSample,
    HostSample,
    Observation,
    StateSample,
    TaskCosts,
    TaskSample,
    WorkerSample,
)
from homeostat.sim.scenario.spec import FaultSpec

NONSENSE = np.array([-1.0, -1e300, 1e300, np.inf, -np.inf, np.nan])
# Fields that were added later have random numbers of their own, so that the damage to the older fields stays the same.
_NEW_FLOW_NUMBERS = ("event_time_s", "watermark_s")
_FLOW_NUMBERS = tuple(
    f.name for f in fields(FlowSample) if f.name not in ("source", "query", "phases_s", *_NEW_FLOW_NUMBERS)
)
_STATE_NUMBERS = tuple(f.name for f in fields(StateSample) if f.name not in ("operator", "backend", "limits"))
_COST_COLUMNS = tuple(f.name for f in fields(TaskCosts))

Damage = Callable[[Array], Array]


def damage(observation: Observation, spec: FaultSpec, nonsense: Array, rng: np.random.Generator) -> Observation:
    """The observation with a share of its numbers replaced. Its batch, its time and its workers stay as they are."""

    def hit(name: str) -> bool:
        return spec.component in ("", name)

    old, new = _damage(spec, nonsense, rng), _damage(spec, nonsense, rng.spawn(1)[0])
    everything = not spec.component
    return replace(
        observation,
        flows=tuple(_flow(f, old, new) if hit(f.source) else f for f in observation.flows),
        tasks={name: _task(t, old, new) if hit(name) else t for name, t in observation.tasks.items()},
        states={name: _numbers(s, _STATE_NUMBERS, new) if hit(name) else s for name, s in observation.states.items()},
        driver=_numbers(observation.driver, _names(DriverSample), new) if everything else observation.driver,
        hosts=tuple(_numbers(h, _names(HostSample)[1:], new) if everything else h for h in observation.hosts),
        files=_numbers(observation.files, _names(FileSample), new) if everything else observation.files,
        workers=_workers(observation.workers, new) if everything else observation.workers,
    )


def _damage(spec: FaultSpec, nonsense: Array, rng: np.random.Generator) -> Damage:
    def replaced(values: Array) -> Array:
        hit = rng.random(len(values)) < spec.share
        return np.where(hit, rng.choice(nonsense, len(values)), values)

    return replaced


def _task(sample: TaskSample, old: Damage, new: Damage) -> TaskSample:
    costs = sample.costs
    return replace(
        sample,
        rows=old(sample.rows),
        run_s=old(sample.run_s),
        rows_out=old(sample.rows_out),
        pending_rows=old(sample.pending_rows),
        pressured_s=old(sample.pressured_s),
        finish_s=old(sample.finish_s),
        costs=costs and replace(costs, **{name: new(getattr(costs, name)) for name in _COST_COLUMNS}),
        **_damaged_numbers(sample, ("began_s", "ended_s"), new),
    )


def _flow(sample: FlowSample, old: Damage, new: Damage) -> FlowSample:
    numbers = _damaged_numbers(sample, _FLOW_NUMBERS, old)
    phases = old(np.array(list(sample.phases_s.values()), dtype=np.float64))
    return replace(
        sample,
        **numbers,
        phases_s=dict(zip(sample.phases_s, phases.tolist(), strict=True)),
        **_damaged_numbers(sample, _NEW_FLOW_NUMBERS, new),
    )


def _workers(sample: WorkerSample, new: Damage) -> WorkerSample:
    return replace(sample, heap_bytes=new(sample.heap_bytes)) if len(sample.heap_bytes) else sample


def _numbers(sample: Any, names: tuple[str, ...], new: Damage) -> Any:
    """The sample with damaged numbers; unchanged if none of them was measured."""
    if all(isnan(getattr(sample, name)) for name in names):
        return sample
    return replace(sample, **_damaged_numbers(sample, names, new))


def _damaged_numbers(sample: object, names: tuple[str, ...], values_of: Damage) -> dict[str, Any]:
    values = values_of(np.array([getattr(sample, name) for name in names], dtype=np.float64))
    return dict(zip(names, values.tolist(), strict=True))


def _names(kind: type[Any]) -> tuple[str, ...]:
    return tuple(f.name for f in fields(kind))
