"""Builds the data about the loop for viewers in other processes: its present state and the matrices of task times."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, replace
from functools import lru_cache

import numpy as np

from homeostat.core.cycle import Trace
from homeostat.core.digest import ComponentDigest, Digest
from homeostat.core.loop_state import ActiveAction, Standing, State
from homeostat.core.observation import Array, IntArray, Observation, TaskSample
from homeostat.core.policy_definition import Policy
from homeostat.core.sentences import change_sentence
from homeostat.core.stats import median
from homeostat.core.topology import Component
from homeostat.store.present import Matrices, Present, PresentAction, PresentComponent, StandingFinding, TimeMatrix

# The matrix is drawn as a picture: more rows or columns cost time and show nothing.
MOST_COLUMNS = 48
MOST_ROWS = 24
_BATCHES = 5
_LONGEST_LIST = 20


def present(policy: Policy, trace: Trace, state: State) -> Present:
    latest = state.history[-1] if state.history else None
    return Present(
        at_s=latest.at_s if latest is not None else state.epoch_since_s,
        policy=policy.name,
        resolvers=tuple(each.name for each in policy.resolvers[:_LONGEST_LIST]),
        mode=state.mode,
        earned=state.earned,
        paused=state.paused,
        objective={name: value for name, value in asdict(state.objective).items() if value is not None},
        observed=dict(state.observed.as_json()),
        desired=dict(state.desired.as_json()),
        conditions=tuple(trace.conditions[:_LONGEST_LIST]),
        symptoms=_standing(state.symptoms),
        diagnoses=_standing(state.diagnoses),
        active=tuple(_active(action) for action in state.active),
        advised=_advice(state),
        components=tuple(_component(component, state, latest) for component in state.topology),
    )


def matrices(state: State) -> Matrices:
    window = state.window[-_BATCHES:]
    matrix_of = {component.name: matrix(window, component.name) for component in state.topology}
    return Matrices({name: times for name, times in matrix_of.items() if times is not None})


def _standing(standing: Mapping[tuple[str, str], Standing]) -> tuple[StandingFinding, ...]:
    return tuple(
        StandingFinding(one.id, what, component, one.since_s)
        for (what, component), one in list(standing.items())[:_LONGEST_LIST]
    )


def _advice(state: State) -> tuple[PresentAction, ...]:
    """Each piece of advice once, under its newest id, however often it was repeated."""
    newest = {(each.kind, each.component, each.cause): (id, each) for id, each in state.advised.items()}
    return tuple(PresentAction(id, change_sentence(each)) for id, each in newest.values())


def _active(action: ActiveAction) -> PresentAction:
    progress = "under way" if action.applied_s is None else "being judged"
    return PresentAction(action.command.id, change_sentence(action.proposal), progress)


def _component(component: Component, state: State, latest: Digest | None) -> PresentComponent:
    digest = latest.components.get(component.name) if latest is not None else None
    instances = digest.instances if digest is not None else int(state.observed.get(component.scaled_by, 0))
    present = PresentComponent(component.name, component.kind, component.query, tuple(component.inputs), instances)
    return present if digest is None or latest is None else _with_load(present, digest, latest)


def _with_load(component: PresentComponent, digest: ComponentDigest, latest: Digest) -> PresentComponent:
    """`busy` is the share of the trigger interval that the stage takes; in a dataflow, the share of the time in which
    the busiest instance works."""
    period_s = latest.trigger_s if latest.trigger_s > 0 else latest.span_s
    busy_s = digest.span_s if math.isfinite(digest.span_s) else digest.busiest_s
    return replace(
        component,
        rows_per_s=_finite(digest.rows / latest.span_s),
        capacity_per_s=_finite(digest.capacity_per_s),
        busy=_finite(busy_s / period_s if period_s > 0 else math.nan),
        pressured=_finite(digest.pressured),
        pending_rows=_finite(digest.pending_rows),
    )


def matrix(window: tuple[Observation, ...], component: str) -> TimeMatrix | None:
    """Run time of each instance on each worker over the window, relative to the stage's median; None without tasks.

    A slow worker shows as a row, a hot key as a column. Too many workers are grouped by host; too many instances are
    put into groups, each as slow as its slowest member.
    """
    samples = [(o.tasks[component], o.workers) for o in window if component in o.tasks and o.tasks[component].instances]
    if not samples:
        return None
    latest, workers = samples[-1]
    by_host = len(workers.ids) > MOST_ROWS
    names = tuple(sorted(set(workers.hosts)))[:MOST_ROWS] if by_host else workers.ids
    slowest = np.full((len(names), min(latest.instances, MOST_COLUMNS)), np.nan)
    for sample, sample_workers in samples:
        if sample.instances == latest.instances:
            _add(slowest, sample, _rows(sample_workers.hosts if by_host else sample_workers.ids, names))
    rows = np.flatnonzero(np.isfinite(slowest).any(axis=1))
    return TimeMatrix(
        tuple(names[row] for row in rows),
        latest.instances,
        tuple(tuple(_finite(float(value)) for value in slowest[row]) for row in rows),
    )


@lru_cache(maxsize=16)
def _rows(labels: tuple[str, ...], names: tuple[str, ...]) -> IntArray:
    """The row of each worker, -1 for none. Cached: thousands of workers may be the same batch after batch."""
    places = {name: row for row, name in enumerate(names)}
    return np.array([places.get(label, -1) for label in labels], dtype=np.int64)


def _add(slowest: Array, sample: TaskSample, row_of: IntArray) -> None:
    measured = np.isfinite(sample.run_s) & (sample.worker >= 0) & (sample.worker < len(row_of))
    instances = np.flatnonzero(measured)
    middle_s = median(sample.run_s[instances][sample.run_s[instances] > 0])
    if not math.isfinite(middle_s):
        return
    rows = row_of[sample.worker[instances]]
    columns = instances * slowest.shape[1] // sample.instances
    is_listed = rows >= 0
    np.fmax.at(slowest, (rows[is_listed], columns[is_listed]), sample.run_s[instances][is_listed] / middle_s)


def _finite(value: float) -> float | None:
    return float(f"{value:.4g}") if math.isfinite(value) else None
