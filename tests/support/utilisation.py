"""Observations of a stage with a known capacity at chosen utilisations, with and without noise."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np

from homeostat.core.observation import Array, Observation, TaskSample
from homeostat.core.view import View
from homeostat.detectors.idle import IdleDetector
from homeostat.detectors.pressure import PressureDetector
from homeostat.testing import instances, observations, view_of

CAPACITY_PER_S = 200.0
SPAN_S = 10.0
SEEDS = range(10)


def stage(arrivals_per_s: Sequence[float] | Array, instances_: int = 2) -> tuple[Observation, ...]:
    """lines → split, which takes 200 rows/s and keeps in its queues what it cannot take."""
    share = np.asarray(arrivals_per_s, dtype=np.float64) * SPAN_S / instances_
    most = CAPACITY_PER_S * SPAN_S / instances_
    queue = 0.0
    taken_rows, waiting = [], []
    for rows in share:
        processed_rows = min(queue + float(rows), most)
        queue += float(rows) - processed_rows
        taken_rows.append(processed_rows)
        waiting.append(queue)

    def tasks(number: int) -> Mapping[str, TaskSample]:
        busy_s = taken_rows[number] / most * SPAN_S
        split = instances([taken_rows[number]] * instances_, busy_s, pending_rows=waiting[number])
        return {"lines": instances(share[number] * instances_, 0.5), "split": split}

    return observations(len(share), tasks, arrival_per_s=np.asarray(arrivals_per_s))


def noisy(seed: int, utilisations: Sequence[float] | Array, sigma: float = 0.15, phi: float = 0.7) -> Array:
    """Arrivals at these utilisations, times log-normal AR(1) noise."""
    fresh = np.random.default_rng(seed).normal(0.0, sigma * math.sqrt(1.0 - phi**2), len(utilisations))
    logs = np.empty(len(fresh))
    value = fresh[0] / math.sqrt(1.0 - phi**2)
    for i, new in enumerate(fresh):
        value = phi * value + new if i else value
        logs[i] = value
    arrivals: Array = CAPACITY_PER_S * np.asarray(utilisations) * np.exp(logs)
    return arrivals


def measured_view(arrivals_per_s: Array) -> View:
    """What is left of so many observations of `stage`: its capacity is the same in all of them."""
    view = view_of(stage([0.67 * CAPACITY_PER_S] * 8))
    one = view.history[-1]
    history = tuple(
        replace(one, at_s=(i + 1) * SPAN_S, batch=i, arrival_per_s=float(a), arrivals_per_s={"lines": float(a)})
        for i, a in enumerate(arrivals_per_s)
    )
    return replace(view, history=history)


def planned_by_risk(observed: Sequence[Observation], *, live: bool = True) -> View:
    """The view of a policy that plans headroom by risk, with instances that come and go with or without a pause."""
    view = view_of(observed)
    knobs = {knob: replace(spec, live=live, apply_s=20.0) for knob, spec in view.capabilities.knobs.items()}
    return replace(view, violation_cost=20.0, capabilities=replace(view.capabilities, knobs=knobs))


def until(view: View, count: int) -> View:
    """The same view when only so many observations had been made."""
    return replace(view, history=view.history[:count], now_s=count * SPAN_S)


@cache
def alarms_in_calm() -> tuple[str, ...]:
    """The kinds of symptom in 2,000 observations of each seed at 0.67 of the capacity, looking at every fortieth."""
    kinds = []
    for seed in SEEDS:
        view = measured_view(noisy(seed, np.full(2000, 0.67)))
        for count in range(120, 2001, 40):
            then = until(view, count)
            kinds += [s.kind for s in (*PressureDetector().detect(then), *IdleDetector().detect(then))]
    return tuple(kinds)
