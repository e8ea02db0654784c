"""Compares the speed of workers, regardless of how many rows they get."""

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
# From this many times the time of its peers, a worker may be slow: lower finds more slow workers, and more false ones.
# A choice.
NOTICED = 1.25
# Times the rows of its peers from which a task is left out where workers are compared by their other tasks. A lower
# number leaves out tasks that hashing made larger, and with them what a slow worker shows. A higher one takes a hot key
# whose rows also cost more for a slow worker. A choice.
CROWDED = 3.0
# The share of the work of an executor that its other stages must be for their pace to count. With a smaller share,
# noise decides. A choice.
_TELLING = 0.2
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
    return executors_of(observation, tuple(observation.tasks)).ratio


def _dataflow_pace(observation: Observation) -> Array:
    """Return the pace of each worker in the component where it is slowest."""
    workers = len(observation.workers.ids)
    slowest = np.full(workers, NAN)
    for component in observation.tasks:
        slowest = np.fmax(slowest, row_time_ratio(observation, component))
    return slowest


def peers_ratio(values: Array, alike: int = 1) -> Array:
    """Return each value over the median of the others, or of all if there are many.

    `alike` instances share the same keys, so the reference leaves out that many of the largest.
    """
    finite = np.isfinite(values)
    ordered: list[float] = sorted(values[finite].tolist())
    count = len(ordered)
    if count < 2:
        return np.full(len(values), NAN)
    if alike <= 1 and count <= FEW:
        return np.array([_over_others(value, ordered) for value in values.tolist()])
    reference = _middle(ordered[: max(1, count - alike)] if alike > 1 else ordered)
    ratio = values / reference if reference > 0 else np.where(values > 0, np.inf, 1.0)
    return ratio if count == len(values) else np.where(finite, ratio, NAN)


def _over_others(value: float, ordered: Sequence[float]) -> float:
    """Return the value over the median of the others; over the larger one if the other of two is idle."""
    if not math.isfinite(value):
        return NAN
    place = ordered.index(value)
    peers = [*ordered[:place], *ordered[place + 1 :]]
    reference = peers[1] if len(peers) == 2 and peers[0] < _IDLE * peers[1] else _middle(peers)
    if reference > 0:
        return value / reference
    return math.inf if value > 0 else 1.0


def _middle(ordered: Sequence[float]) -> float:
    middle = len(ordered) // 2
    return ordered[middle] if len(ordered) % 2 else 0.5 * (ordered[middle - 1] + ordered[middle])


@dataclass(frozen=True, slots=True)
class Tasks:
    """The tasks of a batch: the worker of each, how many times longer than typical of its stage it took, and how long a
    typical one would have taken."""

    worker: IntArray
    slowness: Array
    expected_s: Array


@dataclass(frozen=True, slots=True)
class Executors:
    """The tasks of a batch, how slow the typical task of each executor was, and that over its peers."""

    tasks: Tasks
    typical: Array
    ratio: Array


def executors_of(observation: Observation, components: tuple[str, ...]) -> Executors:
    def compute() -> Executors:
        tasks = tasks_of(observation, components)
        typical = typical_task(tasks, len(observation.workers.ids))
        return Executors(tasks, typical, peers_ratio(typical))

    return observation.once(("executors", components), compute)


def pace_apart_from_crowded_tasks(observation: Observation, components: tuple[str, ...]) -> Array:
    """Return how slow each worker is over its peers in tasks that do not have far more rows than others."""

    def compute() -> Array:
        tasks = tasks_of(observation, components, CROWDED)
        return peers_ratio(typical_task(tasks, len(observation.workers.ids)))

    return observation.once(("executors apart from crowded tasks", components), compute)


def pace_in_other_stages(observation: Observation, components: tuple[str, ...]) -> tuple[Array, tuple[str, ...]]:
    """Return how slow each worker is apart from the stage where it is slowest, and which stage that is.

    The pace is NaN where the other stages are too small a part of its work to tell.
    """

    def compute() -> tuple[Array, tuple[str, ...]]:
        workers = len(observation.workers.ids)
        stages = [tasks_of(observation, (component,)) for component in components]
        typical = np.array([typical_task(stage, workers) for stage in stages]).reshape(len(stages), workers)
        is_known = np.isfinite(typical)
        work_s = np.array([np.bincount(s.worker, weights=s.expected_s, minlength=workers) for s in stages])
        work_s = np.where(is_known, work_s.reshape(is_known.shape), 0.0)
        slowest = np.where(is_known, typical, -1.0).argmax(axis=0) if len(stages) else np.zeros(workers, dtype=np.int64)
        others_s = work_s.copy()
        others_s[slowest, np.arange(workers)] = 0.0
        is_measurable = others_s.sum(axis=0) >= _TELLING * work_s.sum(axis=0)
        with np.errstate(divide="ignore", invalid="ignore"):
            pace = (np.where(is_known, typical, 0.0) * others_s).sum(axis=0) / others_s.sum(axis=0)
        return np.where(is_measurable, pace, NAN), tuple(components[stage] for stage in slowest.tolist())

    return observation.once(("pace in other stages", components), compute)


def is_slow_by_partition(worker: int, batches: Sequence[Observation], components: tuple[str, ...]) -> bool:
    """Whether the same partitions of one stage make the worker seem slow, and it is as fast as others elsewhere."""
    paces = [pace_in_other_stages(batch, components) for batch in batches]
    stages = {stages[worker] for _, stages in paces}
    elsewhere = np.array([pace[worker] for pace, _ in paces])
    known_paces = elsewhere[np.isfinite(elsewhere)]
    if len(stages) != 1 or len(known_paces) < len(elsewhere) or not len(known_paces) or median(known_paces) > NOTICED:
        return False
    (stage,) = stages
    partitions = {tuple(np.flatnonzero(batch.tasks[stage].worker == worker).tolist()) for batch in batches}
    return len(partitions) == 1


def row_time_ratio(observation: Observation, component: str) -> Array:
    """Return the useful time per row of each worker, over its peers."""
    return observation.once(
        ("row time", component),
        lambda: peers_ratio(seconds_per_row(observation, component, len(observation.workers.ids))),
    )


def tasks_of(observation: Observation, components: Sequence[str], most_rows: float = math.inf) -> Tasks:
    """Return the tasks of these components with less than `most_rows` times the rows of their peers.

    A task with few rows counts as if it had the typical number of rows: it takes long for each row, but not long as a
    whole.
    """
    workers, slowness, expected = [np.empty(0, dtype=np.int64)], [np.empty(0)], [np.empty(0)]
    for component in components:
        sample = observation.tasks.get(component)
        if sample is None:
            continue
        measured = np.isfinite(sample.rows) & np.isfinite(sample.run_s)
        good = measured & (sample.worker >= 0) & (sample.rows >= LEAST_ROWS) & (sample.run_s > 0)
        if math.isfinite(most_rows):
            good &= ~(peers_ratio(np.where(good, sample.rows, NAN)) >= most_rows)
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
