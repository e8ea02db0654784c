"""Means over the window, which the paper's rules judge by on both engines, and what is missing in the window."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.evidence_limits import GAP_SHARE, LEAST_KNOWN
from homeostat.core.observation import NAN, Array, Observation
from homeostat.core.topology import Topology
from homeostat.core.view import View, Window

# The share of the time that must be covered by observations: less would let a few of them speak for the window. A
# choice.
_LEAST_COVERED = 0.6
# Triggers' worth of arrivals that may wait behind a batch before it is at a limit: fewer would count what arrives while
# a batch runs. A choice.
_WAITING_BATCHES = 2.0
# Stands for a span of zero, which nothing can be divided by.
_SHORTEST_S = 1e-9
_DATAFLOW_COLUMNS = ("rows", "run_s", "rows_out", "pending_rows", "pressured_s")
_BATCH_COLUMNS = ("rows", "run_s", "rows_out", "finish_s")


def observed_s(view: View) -> float:
    """Return how long the present configuration has been observed. Detectors wait until that fills most of a window."""
    return view.now_s - (view.current[0].at_s - view.current[0].span_s) if view.current else 0.0


def window_digests(view: View) -> tuple[Digest, ...]:
    """Return the digests of the observations in the window."""
    batches = {(o.at_s, o.batch) for o in view.window.observations}
    return tuple(d for d in view.current if (d.at_s, d.batch) in batches)


def instance_means(window: Window, component: str, column: str) -> Array:
    """Return the mean over the window for each instance; NaN for one that was measured less than half of the time."""
    return _means(window.tasks(component, column))


def pressure_shares(window: Window, component: str) -> Array:
    """Return the share of the time in which each instance held its senders back, from 0 to 1."""
    spans = np.array([max(o.span_s, _SHORTEST_S) for o in window.observations]).reshape(-1, 1)
    return np.minimum(1.0, _means(window.tasks(component, "pressured_s") / spans))


def batch_pressure(digests: Sequence[Digest]) -> float:
    """Return max(0, 1 − μ/λ) of a query, from the batches that are at a limit; 0 if fewer than half of them are.

    A batch is at a limit if it took longer than its trigger, or if more than two triggers' arrivals wait behind it.
    Its μ is rows ÷ the longer of its duration and its trigger, which holds for slow and for admission-bound ones.
    NaN if half of the batches or more lack a metric, or if the batches at a limit report no duration at all.
    """
    measured = [d for d in digests if all(map(math.isfinite, (d.rows, d.seconds, d.arrival_per_s)))]
    if not measured or len(measured) < LEAST_KNOWN * len(digests):
        return NAN
    at_limit = [d for d in measured if _at_limit(d)]
    arrival = float(np.mean([d.arrival_per_s for d in measured]))
    if arrival <= 0 or len(at_limit) < LEAST_KNOWN * len(measured):
        return 0.0
    cycles_s = sum(_cycle_s(d) for d in at_limit)
    return max(0.0, 1.0 - sum(d.rows for d in at_limit) / cycles_s / arrival) if cycles_s > 0 else NAN


def longest_stage(digests: Sequence[Digest]) -> str:
    """Return the component whose stage took longest over these batches."""
    total: dict[str, float] = {}
    for digest in digests:
        for name, component in digest.components.items():
            if math.isfinite(component.span_s):
                total[name] = total.get(name, 0.0) + component.span_s
    return max(total, key=lambda name: total[name], default="")


def missing_metric(view: View, least_s: float = 0.0) -> str:
    """Return the first metric that is missing somewhere in the window; empty if none is."""
    if not view.window.observations or view.window.seconds < _LEAST_COVERED * least_s:
        return "observations"
    for before, after in pairwise(view.window.observations):
        if after.at_s - after.span_s > before.at_s + GAP_SHARE * after.span_s:
            return f"what was between {before.at_s:g} and {after.at_s - after.span_s:g} s"
    for observation in view.window.observations:
        missing = _missing_in(observation, view.topology, view.micro_batch)
        if missing:
            return missing
    return ""


def _missing_in(observation: Observation, topology: Topology, micro_batch: bool) -> str:
    for flow in observation.flows:
        numbers = {"rows": flow.rows, "arrival_per_s": flow.arrival_per_s, "pending_rows": flow.pending_rows}
        if micro_batch:
            numbers |= {"seconds": flow.seconds, "trigger_s": flow.trigger_s}
        for name, value in numbers.items():
            if not math.isfinite(value):
                return f"{name} of {flow.source}"
    if not observation.flows:
        return "the sources"
    if micro_batch and all(flow.rows == 0 for flow in observation.flows):
        return ""
    for component in topology.names:
        sample = observation.tasks.get(component)
        if sample is None or not sample.instances:
            return component
        for column in _BATCH_COLUMNS if micro_batch else _DATAFLOW_COLUMNS:
            if not np.isfinite(getattr(sample, column)).all():
                return f"{column} of {component}"
    return ""


def _means(matrix: Array) -> Array:
    finite = np.isfinite(matrix)
    counts = finite.sum(axis=0)
    means: Array = np.where(finite, matrix, 0.0).sum(axis=0) / np.maximum(counts, 1)
    means[counts < max(1.0, LEAST_KNOWN * len(matrix))] = NAN
    return means


def _at_limit(digest: Digest) -> bool:
    waiting = digest.pending_rows > _WAITING_BATCHES * digest.arrival_per_s * _cycle_s(digest)
    return digest.seconds > digest.trigger_s or waiting


def _cycle_s(digest: Digest) -> float:
    return max(digest.seconds, digest.trigger_s) if math.isfinite(digest.trigger_s) else digest.seconds
