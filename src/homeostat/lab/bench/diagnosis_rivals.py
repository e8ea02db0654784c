"""Rules of other tools as policies for `homeostat bench diagnosis`: a rule of thumb, and published thresholds.

Both check one batch at a time, and only diagnose.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from homeostat.core.causes import (
    DATA_SKEW,
    HASH_IMBALANCE,
    SLOW_INSTANCE,
    SOURCE_SKEW,
    UNDER_PROVISIONED,
)
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.observation import Array, Observation, TaskCosts, TaskSample
from homeostat.core.policy_definition import Policy
from homeostat.core.time_causes import (
    COSTLY_KEYS,
    FAILING_TASKS,
    GC_BOUND,
    SHUFFLE_BOUND,
    SKEWED_JOIN,
    SLOW_HOST,
    SMALL_FILES,
    SPILLING,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.core.topology import Topology
from homeostat.core.view import View

MIB, GIB = 2.0**20, 2.0**30
# A rule that only compares task times calls all of these skew, so it claims to find each of them.
_UNEVEN = frozenset({DATA_SKEW, SOURCE_SKEW, HASH_IMBALANCE, COSTLY_KEYS, SKEWED_JOIN})
# The kinds that the paper's table can name, also as another name of a fault.
TABLE_CLAIMS = frozenset({UNDER_PROVISIONED, SLOW_INSTANCE, SLOW_HOST, DATA_SKEW, HASH_IMBALANCE, SKEWED_JOIN})


@dataclass(frozen=True, slots=True)
class MaxMedianRule:
    """The rule of thumb for the stage page of Spark's UI: the slowest task against the median one.

    If the slowest task takes more than `ratio` times as long, the stage is skewed if that task also has more than
    `ratio` times the rows of the median one; otherwise its executor is slow. A batch that is longer than its trigger
    and has no such stage needs more executors. The rule is usually stated with a ratio of two. A smaller one finds more
    and is wrong more often.
    """

    claims: ClassVar[frozenset[str]] = _UNEVEN | {SLOW_INSTANCE, SLOW_HOST, UNDER_PROVISIONED}
    ratio: float = 2.0
    name: str = "max-median"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        batch = view.window.latest
        if batch is None:
            return
        uneven = False
        for component, tasks in batch.tasks.items():
            run_s, rows = _finite_values(tasks.run_s), np.nan_to_num(tasks.rows)
            if len(run_s) < 2 or np.max(run_s) <= self.ratio * np.median(run_s):
                continue
            uneven = True
            slowest = int(np.nanargmax(tasks.run_s))
            has_more_rows = rows[slowest] > self.ratio * np.median(rows)
            cause = _skew_at(view.topology, component) if has_more_rows else SLOW_INSTANCE
            yield Diagnosis(cause, component)
        late = any(flow.seconds > flow.trigger_s for flow in batch.flows)
        if late and not uneven:
            yield Diagnosis(UNDER_PROVISIONED)


@dataclass(frozen=True, slots=True)
class SparkForensicsThresholds:
    """The published thresholds of SparkForensics, applied to the stages of each batch.

    Source: `thresholds` in packages/core/src/detectors.ts of github.com/shuffle-works/sparkforensics, and the tables in
    content/bottlenecks of github.com/shuffle-works/spark-tuning-reference. The tool reads the log of a whole run; here
    each batch is a run, so a share of the run is a share of the batch. Findings are left out that name no cause
    (stragglers, slow stages), that concern other things (caching, plans, idle executors), or that need the life of
    executors (churn).
    """

    claims: ClassVar[frozenset[str]] = _UNEVEN | {
        SLOW_INSTANCE,
        SLOW_HOST,
        GC_BOUND,
        SPILLING,
        FAILING_TASKS,
        TINY_TASKS,
        SHUFFLE_BOUND,
        SMALL_FILES,
        TOO_FEW_PARTITIONS,
    }
    name: str = "sparkforensics"

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        batch = view.window.latest
        if batch is None:
            return
        batch_s = max((flow.seconds for flow in batch.flows if np.isfinite(flow.seconds)), default=batch.span_s)
        for component, tasks in batch.tasks.items():
            if len(_finite_values(tasks.run_s)) == 0:
                continue
            if _is_skewed(tasks, batch_s):
                yield Diagnosis(_skew_at(view.topology, component), component)
            if _has_slow_host(tasks, batch):
                yield Diagnosis(SLOW_HOST, component)
            elif _has_slow_executor(tasks, batch):
                yield Diagnosis(SLOW_INSTANCE, component)
            if _is_tiny(tasks):
                yield Diagnosis(TINY_TASKS, component)
            if _fails(tasks, batch, component):
                yield Diagnosis(FAILING_TASKS, component)
            for cause in _from_costs(tasks):
                yield Diagnosis(cause, component)
        if _has_small_files(batch):
            yield Diagnosis(SMALL_FILES)


# Every number below is one of the published thresholds, with the name that it has there.
_SKEW_RATIO, _TASKS_FOR_P95, _SHARE_OF_RUN = 3.0, 20, 0.005  # skew: ratioWarn, minTasksForP95, floorPctWarn
_HOSTS, _HOST_TASKS, _HOST_RATIO, _HOST_SHARE = 3, 15, 2.0, 0.2  # slowHost: minHosts, minTasks, ratioWarn, minShare
_EXECUTOR_RATIO, _HOST_FLOOR_S = 1.33, 1.0  # slowHost: ratioTiers[0], floorMs
_GC_SHARE, _GC_RUN_S = 0.10, 10.0  # gc: warnPct100, minRunTimeMs
_FAILED_TASKS, _FAILED_SHARE = 10, 0.05  # failures: minTasks, warnRate
_RETRIES, _RETRY_S = 3, 30.0  # retryWaste: minWasted, minWasteMs
_TINY_TASKS, _TINY_MEDIAN_S, _TINY_P95_S = 100, 0.5, 1.0  # tinyTask: minTasks, maxP50, maxP95
_SHUFFLE_BYTES = 50 * MIB  # shuffle read bytes in a stage
_FEW_TASKS, _FEW_TASKS_BYTES = 7, GIB  # partition sizing: low parallelism
_FILES, _FILE_BYTES = 100, 3 * MIB  # small files: count, mean size


def _is_skewed(tasks: TaskSample, batch_s: float) -> bool:
    run_s = _finite_values(tasks.run_s)
    longest_s = float(np.quantile(run_s, 0.95) if len(run_s) >= _TASKS_FOR_P95 else np.max(run_s))
    median_s = float(np.median(run_s))
    return longest_s > _SKEW_RATIO * median_s and longest_s - median_s >= _SHARE_OF_RUN * batch_s


def _has_slow_host(tasks: TaskSample, batch: Observation) -> bool:
    hosts = batch.workers.hosts
    host_of = np.array([hosts[i] if 0 <= i < len(hosts) else "" for i in tasks.worker.tolist()])
    return _is_slow(tasks, host_of, _HOST_RATIO, _HOST_SHARE)


def _has_slow_executor(tasks: TaskSample, batch: Observation) -> bool:
    executor_of = np.array([str(i) if i >= 0 else "" for i in tasks.worker.tolist()])
    return _is_slow(tasks, executor_of, _EXECUTOR_RATIO, 0.0)


def _is_slow(tasks: TaskSample, place_of: Array, ratio: float, least_share: float) -> bool:
    """Whether the tasks of one place take `ratio` times the mean task time of the median place."""
    is_known = np.isfinite(tasks.run_s) & (place_of != "")
    places, counts = np.unique(place_of[is_known], return_counts=True)
    if len(places) < _HOSTS or is_known.sum() < _HOST_TASKS:
        return False
    means_s = np.array([tasks.run_s[is_known & (place_of == place)].mean() for place in places])
    shares = counts / counts.sum()
    slow = (means_s >= ratio * np.median(means_s)) & (means_s >= _HOST_FLOOR_S) & (shares >= least_share)
    return bool(slow.any())


def _is_tiny(tasks: TaskSample) -> bool:
    run_s = _finite_values(tasks.run_s)
    short = np.median(run_s) <= _TINY_MEDIAN_S and np.quantile(run_s, 0.95) <= _TINY_P95_S
    return bool(len(run_s) >= _TINY_TASKS and short)


def _fails(tasks: TaskSample, batch: Observation, component: str) -> bool:
    failures = sum(failure.count for failure in batch.failures if failure.component == component)
    wasted_s = float(np.nansum(tasks.costs.failed_s)) if tasks.costs is not None else 0.0
    often = tasks.instances >= _FAILED_TASKS and failures > _FAILED_SHARE * tasks.instances
    return often or (failures >= _RETRIES and wasted_s >= _RETRY_S)


def _from_costs(tasks: TaskSample) -> Iterator[str]:
    costs = tasks.costs
    if costs is None:
        return
    run_s = float(np.nansum(tasks.run_s))
    shuffled_bytes = _total(costs, "shuffle_read_bytes")
    if run_s >= _GC_RUN_S and _total(costs, "gc_s") > _GC_SHARE * run_s:
        yield GC_BOUND
    if _total(costs, "spilled_memory_bytes") > 0:
        yield SPILLING
    if shuffled_bytes > _SHUFFLE_BYTES:
        yield SHUFFLE_BOUND
    if shuffled_bytes >= _FEW_TASKS_BYTES and tasks.instances <= _FEW_TASKS:
        yield TOO_FEW_PARTITIONS


def _has_small_files(batch: Observation) -> bool:
    files = batch.files
    sides = ((files.read, files.read_bytes), (files.written, files.written_bytes))
    return any(count > _FILES and size_bytes < _FILE_BYTES * count for count, size_bytes in sides)


def _total(costs: TaskCosts, column: str) -> float:
    return float(np.nansum(getattr(costs, column)))


def _finite_values(values: Array) -> Array:
    return values[np.isfinite(values)]


def _skew_at(topology: Topology, component: str) -> str:
    return SOURCE_SKEW if component in topology and topology[component].kind == "source" else DATA_SKEW


RIVALS = (MaxMedianRule(), SparkForensicsThresholds())
# The kinds of fault that each rival can name. A policy that is not listed can name every kind.
CLAIMS: Mapping[str, frozenset[str]] = {
    "provisioning.paper": TABLE_CLAIMS,
    **{rival.name: rival.claims for rival in RIVALS},
}


def rival_policies() -> dict[str, Policy]:
    """A policy for each rival, which looks at every batch and proposes nothing."""
    return {rival.name: Policy(rival.name, diagnosers=(rival,)) for rival in RIVALS}
