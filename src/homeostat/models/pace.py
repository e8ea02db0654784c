"""Whether the worker or the partition makes a task slow, from the tasks of several batches.

ln(time per row) = stage + worker + partition + noise. A worker's part is the median over its tasks in all stages, and a
partition's part the median of what remains. The two can be distinguished only if workers ran several partitions.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial

import numpy as np

from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.observation import Array, Observation, TaskSample
from homeostat.core.stats import median
from homeostat.core.worker_pace import LEAST_ROWS, executors_of, is_slow_by_partition, peers_ratio

# The number of batches that are compared: more give a more certain result, fewer a more recent one. A choice, as in the
# detector of slow workers.
LOOK_BACK = 6
# A task is examined if its time per row is this many times that of the typical task. This is below the limit of every
# cause, because its worker may be faster than others. A choice.
DIFFERENT = 1.2


@dataclass(frozen=True, slots=True)
class Paces:
    """`workers` is how many times longer for a row each worker takes than its peers. `partitions` is the same for the
    partitions of each component, without the part that their workers cause.

    `distinguishable` is True for a component if the two can be distinguished, because workers ran different partitions.
    A worker or partition with too few tasks is left out, and so are the partitions of a component whose tasks all take
    about as long for each row.
    """

    workers: Mapping[str, float] = field(default_factory=dict)
    partitions: Mapping[str, Array] = field(default_factory=dict)
    distinguishable: Mapping[str, bool] = field(default_factory=dict)


def paces(observations: Sequence[Observation]) -> Paces:
    recent = [o for o in observations[-LOOK_BACK:] if o.tasks and o.workers.ids]
    if len(recent) < LEAST_OBSERVATIONS:
        return Paces()
    workers = _worker_paces(recent)
    names = [name for name in recent[-1].tasks if sum(name in o.tasks for o in recent) >= LEAST_OBSERVATIONS]
    differing = [name for name in names if sum(_differs(o, name) for o in recent) >= LEAST_OBSERVATIONS]
    partitions = {name: _partition_paces(recent, name, workers) for name in differing}
    is_worth_telling = bool(differing) or any(ratio >= DIFFERENT for ratio in workers.values())
    return Paces(workers, partitions, {name: _are_distinguishable(recent, name) for name in names if is_worth_telling})


def _differs(observation: Observation, name: str) -> bool:
    """Whether some task of the component takes clearly longer for each row than the typical one."""
    return observation.once(("differing tasks", name), partial(_tasks_differ, observation, name))


def _tasks_differ(observation: Observation, name: str) -> bool:
    sample = observation.tasks.get(name)
    if sample is None:
        return False
    slowness = _slowness(observation, sample, {})
    known_slowness = slowness[np.isfinite(slowness)]
    return bool(len(known_slowness)) and float(known_slowness.max()) >= DIFFERENT * median(known_slowness)


def _worker_paces(recent: Sequence[Observation]) -> dict[str, float]:
    ratios: dict[str, list[float]] = {}
    for observation in recent:
        executors = executors_of(observation, tuple(observation.tasks))
        if not len(executors.tasks.worker):
            continue
        for id, ratio in zip(observation.workers.ids, executors.ratio.tolist(), strict=True):
            if math.isfinite(ratio):
                ratios.setdefault(id, []).append(ratio)
    present = {id: number for number, id in enumerate(recent[-1].workers.ids)}
    typical = {
        id: median(np.array(values))
        for id, values in ratios.items()
        if id in present and len(values) >= LEAST_OBSERVATIONS
    }
    same = [observation for observation in recent if observation.workers.ids == recent[-1].workers.ids]
    return {
        id: 1.0 if ratio >= DIFFERENT and _is_by_partition(present[id], same) else ratio
        for id, ratio in typical.items()
    }


def _is_by_partition(worker: int, recent: Sequence[Observation]) -> bool:
    return len(recent) >= LEAST_OBSERVATIONS and is_slow_by_partition(worker, recent, tuple(recent[-1].tasks))


def _partition_paces(recent: Sequence[Observation], name: str, workers: Mapping[str, float]) -> Array:
    size = recent[-1].tasks[name].instances
    lines = [
        _slowness(o, o.tasks[name], workers) for o in recent if name in o.tasks and o.tasks[name].instances == size
    ]
    table = np.array(lines).reshape(len(lines), size)
    counts = np.isfinite(table).sum(axis=0)
    typical = np.full(size, np.nan)
    enough = counts >= LEAST_OBSERVATIONS
    if enough.any():
        typical[enough] = np.nanmedian(table[:, enough], axis=0)
    return peers_ratio(typical)


def _slowness(observation: Observation, sample: TaskSample, workers: Mapping[str, float]) -> Array:
    """The time of each task per row, at the pace of its worker. A task with few rows counts as if it had the median."""
    ids = observation.workers.ids
    pace = np.array([workers.get(ids[w], 1.0) if 0 <= w < len(ids) else 1.0 for w in sample.worker.tolist()])
    good = np.isfinite(sample.rows) & np.isfinite(sample.run_s) & (sample.rows >= LEAST_ROWS) & (sample.run_s > 0)
    slowness = np.full(sample.instances, np.nan)
    if good.any():
        rows = np.maximum(sample.rows[good], median(sample.rows[good]))
        slowness[good] = sample.run_s[good] / pace[good] / rows
    return slowness


def _are_distinguishable(recent: Sequence[Observation], name: str) -> bool:
    """Whether some partition ran on different workers, or every worker runs several partitions."""
    met: dict[int, set[str]] = {}
    several = True
    for observation in recent:
        sample = observation.tasks.get(name)
        if sample is None:
            continue
        counts = np.bincount(sample.worker[sample.worker >= 0])
        several = several and bool((counts[counts > 0] > 1).all())
        for partition, worker in enumerate(sample.worker.tolist()):
            if 0 <= worker < len(observation.workers.ids):
                met.setdefault(partition, set()).add(observation.workers.ids[worker])
    return several or any(len(workers) > 1 for workers in met.values())
