"""How fast workers are compared with each other, whatever rows they get."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.observation import NAN, Array, IntArray, Observation
from homeostat.core.stats import median

# A task with fewer rows has no time per row.
LEAST_ROWS = 1.0
# Up to this many values, each is compared with the median of the others; more, with the median of all, which one value
# hardly moves and which is faster to compute. A choice.
FEW = 8
# Times as long as the peers from which a worker may be slow: lower finds more slow workers, and more chance. A choice.
NOTICED = 1.25
# Half of the time, less what rounding could add: of two equal tasks the lower one is the median.
_HALF = 0.5 - 1e-9
# Of two peers, one with less than this share of the other is idle and no measure. A choice.
_IDLE = 0.1


def paces(observations: Sequence[Observation]) -> dict[str, float]:
    """Return how many times longer than its peers each worker took in the last observations.

    Workers that did nothing are left out.
    """
    recent = observations[-LEAST_OBSERVATIONS:]
    ids = recent[-1].workers.ids if recent else ()
    lines = [_batch_pace(o) if _is_batch(o) else _dataflow_pace(o) for o in recent if o.workers.ids == ids]
    ratios_of = {id: [float(line[place]) for line in lines if np.isfinite(line[place])] for place, id in enumerate(ids)}
    return {id: median(np.array(ratios)) for id, ratios in ratios_of.items() if ratios}


def _is_batch(observation: Observation) -> bool:
    return any(math.isfinite(flow.seconds) or math.isfinite(flow.trigger_s) for flow in observation.flows)


def _batch_pace(observation: Observation) -> Array:
    return peers_ratio(typical_task(tasks_of(observation, tuple(observation.tasks)), len(observation.workers.ids)))


def _dataflow_pace(observation: Observation) -> Array:
    """Return the pace of each worker in the component where it is slowest."""
    workers = len(observation.workers.ids)
    slowest = np.full(workers, NAN)
    for component in observation.tasks:
        slowest = np.fmax(slowest, peers_ratio(seconds_per_row(observation, component, workers)))
    return slowest


def peers_ratio(values: Array, alike: int = 1) -> Array:
    """Return each value over the median of the others, or of all if there are many.

    `alike` instances share the same keys, so the reference leaves out that many of the largest.
    """
    count = len(values)
    finite = np.isfinite(values)
    if finite.sum() < 2:
        return np.full(count, NAN)
    if alike > 1:
        reference = np.full(count, median(np.sort(values[finite])[: max(1, int(finite.sum()) - alike)]))
    elif finite.sum() > FEW:
        reference = np.full(count, median(values[finite]))
    else:
        reference = np.full(count, NAN)
        for i in np.flatnonzero(finite):
            reference[i] = _middle(values[finite & (np.arange(count) != i)])
    with np.errstate(divide="ignore", invalid="ignore"):
        ratio = np.where(reference > 0, values / reference, np.where(values > 0, np.inf, 1.0))
    return np.where(finite, ratio, NAN)


def _middle(peers: Array) -> float:
    """Return the median; of two values the larger one if the other is idle."""
    if len(peers) == 2 and peers.min() < _IDLE * peers.max():
        return float(peers.max())
    return median(peers)


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a batch: the worker of each, how many times longer than typical of its stage it took, and how long a
    typical one would have taken."""

    worker: IntArray
    slowness: Array
    expected_s: Array


def tasks_of(observation: Observation, components: Sequence[str]) -> Tasks:
    """Return the tasks of these components. A task with few rows counts as if it had the typical number of rows.

    It takes long for each row, but not long as a whole.
    """
    workers, slowness, expected = [np.empty(0, dtype=np.int64)], [np.empty(0)], [np.empty(0)]
    for component in components:
        sample = observation.tasks.get(component)
        if sample is None:
            continue
        measured = np.isfinite(sample.rows) & np.isfinite(sample.run_s)
        good = measured & (sample.worker >= 0) & (sample.rows >= LEAST_ROWS) & (sample.run_s > 0)
        rows, run_s = sample.rows[good], sample.run_s[good]
        expected_s = median(run_s / rows) * np.maximum(rows, median(rows))
        usable = np.isfinite(expected_s) & (expected_s > 0)
        workers.append(sample.worker[good][usable])
        slowness.append(run_s[usable] / expected_s[usable])
        expected.append(expected_s[usable])
    return Tasks(np.concatenate(workers), np.concatenate(slowness), np.concatenate(expected))


def typical_task(batch: Tasks, workers: int) -> Array:
    """Return the median slowness of the tasks of each worker, weighted by the time they should take.

    Of two tasks it is the lower one, because a straggler is not typical.
    """
    order = np.argsort(batch.slowness)
    order = order[np.argsort(batch.worker[order], kind="stable")]  # several times faster than lexsort
    worker, tasks = batch.worker[order], np.bincount(batch.worker, minlength=workers)
    upto_s = np.cumsum(batch.expected_s[order])
    ends = np.cumsum(tasks)
    before_s = np.concatenate([[0.0], upto_s])[ends - tasks]
    whole_s = np.concatenate([[0.0], upto_s])[ends] - before_s
    below = upto_s - before_s[worker] < _HALF * whole_s[worker]
    middle = ends - tasks + np.bincount(worker[below], minlength=workers)
    typical = np.full(workers, NAN)
    busy = tasks > 0
    typical[busy] = batch.slowness[order][middle[busy]]
    return typical


def seconds_per_row(observation: Observation, component: str, workers: int) -> Array:
    """Return the useful time per row of each worker."""
    sample = observation.tasks.get(component)
    if sample is None:
        return np.full(workers, NAN)
    good = (sample.worker >= 0) & np.isfinite(sample.rows) & np.isfinite(sample.run_s)
    rows = np.bincount(sample.worker[good], weights=sample.rows[good], minlength=workers)
    seconds = np.bincount(sample.worker[good], weights=sample.run_s[good], minlength=workers)
    with np.errstate(divide="ignore", invalid="ignore"):
        per_row: Array = np.where((rows >= LEAST_ROWS) & (seconds > 0), seconds / rows, NAN)
    return per_row
