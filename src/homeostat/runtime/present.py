"""What the loop sees and thinks now, as one value that a viewer in another process can show."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict
from functools import lru_cache

import numpy as np

from homeostat.core.cycle import Trace
from homeostat.core.digest import ComponentDigest, Digest
from homeostat.core.effects import describe_proposal
from homeostat.core.loop_state import Standing, State
from homeostat.core.observation import Array, IntArray, Observation, TaskSample
from homeostat.core.policy import Policy
from homeostat.core.record_json import JSON
from homeostat.core.stats import median
from homeostat.core.topology import Component

PRESENT = "present"
MATRICES = "matrices"
# The matrix is a picture: wider or higher than this it would only cost.
MOST_COLUMNS = 48
MOST_ROWS = 24
_BATCHES = 5
_LONGEST_LIST = 20


def present(policy: Policy, trace: Trace, state: State) -> JSON:
    latest = state.history[-1] if state.history else None
    components = [_component(component, state, latest) for component in state.topology]
    return {
        "at_s": latest.at_s if latest is not None else state.epoch_since_s,
        "policy": policy.name,
        "resolvers": [each.name for each in policy.resolvers[:_LONGEST_LIST]],
        "mode": state.mode,
        "earned": state.earned,
        "paused": state.paused,
        "objective": {name: value for name, value in asdict(state.objective).items() if value is not None},
        "observed": dict(state.observed.as_json()),
        "desired": dict(state.desired.as_json()),
        "conditions": list[JSON](trace.conditions[:_LONGEST_LIST]),
        "symptoms": _standing(state.symptoms),
        "diagnoses": _standing(state.diagnoses),
        "active": [_active(state, number) for number in range(len(state.active))],
        "advised": _advised(state),
        "components": list[JSON](components),
    }


def matrices(state: State) -> JSON:
    """One for each component; apart from the rest, because it is much and only one page shows it."""
    seen = state.window[-_BATCHES:]
    return {"components": {each.name: found for each in state.topology if (found := matrix(seen, each.name))}}


def _standing(standing: Mapping[tuple[str, str], Standing]) -> JSON:
    return [
        {"id": one.id, "what": what, "component": component, "since_s": one.since_s}
        for (what, component), one in list(standing.items())[:_LONGEST_LIST]
    ]


def _advised(state: State) -> JSON:
    """Each piece of advice once: what is advised again and again waits under its newest id."""
    newest = {(each.kind, each.component, each.cause): (id, each) for id, each in state.advised.items()}
    return [{"id": id, "text": describe_proposal(each)} for id, each in newest.values()]


def _active(state: State, number: int) -> JSON:
    action = state.active[number]
    return {
        "id": action.command.id,
        "text": describe_proposal(action.proposal),
        "state": "under way" if action.applied_s is None else "being judged",
    }


def _component(component: Component, state: State, latest: Digest | None) -> JSON:
    seen = latest.components.get(component.name) if latest is not None else None
    body: dict[str, JSON] = {
        "name": component.name,
        "kind": component.kind,
        "query": component.query,
        "inputs": list(component.inputs),
        "instances": seen.instances if seen is not None else int(state.observed.get(component.scaled_by)),
    }
    return body | (_load(seen, latest) if seen is not None and latest is not None else {})


def _load(seen: ComponentDigest, latest: Digest) -> dict[str, JSON]:
    """Busy is the share of the trigger that the stage takes; in a dataflow, of the time in which the busiest
    instance works."""
    period_s = latest.trigger_s if latest.trigger_s > 0 else latest.span_s
    busy_s = seen.span_s if math.isfinite(seen.span_s) else seen.busiest_s
    numbers = {
        "rows_per_s": seen.rows / latest.span_s,
        "capacity_per_s": seen.capacity_per_s,
        "busy": busy_s / period_s if period_s > 0 else math.nan,
        "pressured": seen.pressured,
        "pending_rows": seen.pending_rows,
    }
    return {name: _known(value) for name, value in numbers.items()}


def matrix(window: tuple[Observation, ...], component: str) -> JSON:
    """Time of each instance on each worker, in medians of its stage, over the last batches; null where it never ran.

    A slow worker shows as a row, a hot key as a column. Workers that are too many are put together by host, instances
    that are too many in groups, each as slow as its slowest.
    """
    seen = [(o.tasks[component], o.workers) for o in window if component in o.tasks and o.tasks[component].instances]
    if not seen:
        return None
    latest, workers = seen[-1]
    by_host = len(workers.ids) > MOST_ROWS
    names = tuple(sorted(set(workers.hosts)))[:MOST_ROWS] if by_host else workers.ids
    slowest = np.full((len(names), min(latest.instances, MOST_COLUMNS)), np.nan)
    for sample, there in seen:
        if sample.instances == latest.instances:
            _add(slowest, sample, _rows(there.hosts if by_host else there.ids, names))
    rows = np.flatnonzero(np.isfinite(slowest).any(axis=1))
    return {
        "workers": [names[row] for row in rows],
        "instances": latest.instances,
        "cells": [[_known(float(value)) for value in slowest[row]] for row in rows],
    }


@lru_cache(maxsize=16)
def _rows(labels: tuple[str, ...], names: tuple[str, ...]) -> IntArray:
    """Which row each worker is in, -1 for none. The workers are the same batch after batch, and may be thousands."""
    places = {name: row for row, name in enumerate(names)}
    return np.array([places.get(label, -1) for label in labels], dtype=np.int64)


def _add(slowest: Array, sample: TaskSample, row_of: IntArray) -> None:
    known = np.isfinite(sample.run_s) & (sample.worker >= 0) & (sample.worker < len(row_of))
    instances = np.flatnonzero(known)
    middle_s = median(sample.run_s[instances][sample.run_s[instances] > 0])
    if not math.isfinite(middle_s):
        return
    rows = row_of[sample.worker[instances]]
    columns = instances * slowest.shape[1] // sample.instances
    shown = rows >= 0
    np.fmax.at(slowest, (rows[shown], columns[shown]), sample.run_s[instances][shown] / middle_s)


def _known(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None
