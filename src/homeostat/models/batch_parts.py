"""The parts of a recorded batch: the driver's phases, the stages, and the time around them.

A batch consists of phases on the driver and, inside `addBatch`, stages of tasks. The time of `addBatch` in which no
stage runs belongs to the driver, if it lies before the last stage ends. The time after the last stage, and the time of
jobs without a stage of the query, belong to the sink.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from homeostat.core.makespan import makespan_s
from homeostat.core.observation import NAN, Array, IntArray, JobSpan, Observation, TaskCosts, TaskSample
from homeostat.core.stats import filled, median, numpy_quantile

# Spark's names of the phases, by what they do. `addBatch` contains the stages and is divided further.
SOURCE_PHASES = ("latestOffset", "getOffset", "setOffsetRange", "getEndOffset", "getBatch")
PLANNING_PHASES = ("queryPlanning",)
CHECKPOINT_PHASES = ("walCommit", "commitOffsets", "commitBatch")
STAGES_PHASE = "addBatch"
# The time of a short task is this quantile of the task times: the smallest may be an outlier. A choice.
_SHORT_TASK = 0.1


@dataclass(frozen=True)
class StagePart:
    """The tasks of one component in one batch. `task_s` is how long each occupied its slot, with failed attempts."""

    name: str
    task_s: Array
    rows: Array
    worker: IntArray
    costs: TaskCosts | None
    seconds: float
    slots: int

    @cached_property
    def recorded_s(self) -> float:
        """How long the recorded tasks take on the recorded slots."""
        return makespan_s(self.task_s, self.slots)

    @cached_property
    def short_task_s(self) -> float:
        """The time of a short task: starting a task takes no longer than this."""
        return numpy_quantile(np.sort(self.task_s), _SHORT_TASK)

    @cached_property
    def all_took_time(self) -> bool:
        return bool((self.task_s > 0).all())

    def replay_s(self, task_s: Array, slots: int | None = None) -> float:
        """Return how long the stage would have taken with other tasks, at the pace at which it ran."""
        recorded_s = self.recorded_s
        if not recorded_s > 0:
            return self.seconds
        unchanged = task_s is self.task_s and slots is None
        return self.seconds * (recorded_s if unchanged else makespan_s(task_s, slots or self.slots)) / recorded_s

    def cost(self, name: str) -> Array:
        """A column of the costs. A task that was not measured counts like a typical one, and as 0 if none was."""
        if self.costs is None:
            return np.zeros(len(self.task_s))
        column: Array = getattr(self.costs, name)
        return column if np.isfinite(column).all() else filled(or_typical(column), 0.0)


@dataclass(frozen=True, slots=True)
class BatchParts:
    """One batch of `seconds`. `period_s` is how long it may take: its trigger interval, or its duration if that is
    longer.

    `lead_s` is the time of `addBatch` before the first stage and between stages. `tail_s` is the time after the last
    stage and in jobs that run no stage of the query. Both are NaN if the engine does not report when stages ran. Only
    their sum, `around_s`, is then known. `outside_s` is the time of the whole batch in which no stage ran; NaN if
    unknown.
    """

    seconds: float
    trigger_s: float
    rows: float
    phases_s: Mapping[str, float]
    stages: tuple[StagePart, ...]
    lead_s: float
    tail_s: float
    around_s: float
    outside_s: float = NAN

    @property
    def period_s(self) -> float:
        return max(self.seconds, self.trigger_s) if math.isfinite(self.trigger_s) else self.seconds

    @property
    def slots(self) -> int:
        return self.stages[0].slots if self.stages else 1

    def work_s(self, component: str) -> float:
        """How long the tasks of a component take together."""
        return sum(float(stage.task_s.sum()) for stage in self.stages if stage.name == component)

    def stage_s(self, component: str) -> float:
        return sum(stage.seconds for stage in self.stages if stage.name == component)

    def of_interval(self, arrival_per_s: float) -> float:
        """The time that the batch would take with the rows of one trigger interval, as a share of its real time.

        1 if it is not known, or if no more rows were read than arrive in an interval.
        """
        share_of_rows = arrival_per_s * self.trigger_s / self.rows
        if not (share_of_rows < 1.0 and math.isfinite(self.outside_s)):
            return 1.0
        return (self.outside_s + share_of_rows * (self.seconds - self.outside_s)) / self.seconds

    def phases(self, names: Iterable[str]) -> float:
        return sum(self.phases_s.get(name, 0.0) for name in names)


def batch_parts(observation: Observation) -> BatchParts | None:
    """Return the parts of a batch; None if it had no rows, or if its duration or tasks are unknown."""
    flows = observation.flows
    seconds = max((flow.seconds for flow in flows), default=NAN)
    rows = sum(flow.rows for flow in flows)
    if not (seconds > 0 and rows > 0 and observation.tasks):
        return None
    slots = max(1, int(observation.workers.slots.sum()))
    stages = tuple(
        part for name, sample in observation.tasks.items() if (part := _stage(name, sample, slots)) is not None
    )
    phases_s = {name: value for name, value in flows[0].phases_s.items() if value >= 0}
    add_s = phases_s.get(STAGES_PHASE, seconds - sum(phases_s.values()))
    spans = [(s.began_s, s.ended_s) for s in observation.tasks.values()]
    lead_s, tail_s = _around(spans, observation.other_jobs, _start_of_stages_s(phases_s), add_s)
    stages_s = sum(stage.seconds for stage in stages)
    around_s = max(0.0, add_s - stages_s)
    if _all_known(spans):
        outside_s = seconds - _union_s(spans)
    else:
        outside_s = seconds - stages_s if len(stages) == len(spans) else NAN
    return BatchParts(seconds, flows[0].trigger_s, rows, phases_s, stages, lead_s, tail_s, around_s, outside_s)


def _stage(name: str, sample: TaskSample, slots: int) -> StagePart | None:
    measured = np.isfinite(sample.run_s)
    if not measured.any():
        return None
    # A task that was not measured counts like a typical one. With any other value it would seem to delay all others, or
    # none.
    task_s, costs = or_typical(sample.run_s), sample.costs
    if costs is not None:
        extra = (costs.fetch_wait_s, costs.deserialise_s, costs.serialise_s, costs.delay_s, costs.failed_s)
        task_s = task_s + sum(filled(column, 0.0) for column in extra)
    finish_s = sample.finish_s[np.isfinite(sample.finish_s)]
    seconds = float(finish_s.max()) if len(finish_s) else makespan_s(task_s, slots)
    return StagePart(name, task_s, or_typical(sample.rows), sample.worker, costs, seconds, slots)


def or_typical(values: Array) -> Array:
    is_known = np.isfinite(values)
    return (
        np.asarray(np.where(is_known, values, median(values[is_known])))
        if is_known.any() and not is_known.all()
        else values
    )


def _start_of_stages_s(phases_s: Mapping[str, float]) -> float:
    """When `addBatch` began, in seconds after the batch did. The other phases come before it, except the commits."""
    before = (*SOURCE_PHASES, *PLANNING_PHASES, "walCommit")
    return sum(phases_s.get(name, 0.0) for name in before)


def _around(
    spans: list[tuple[float, float]], other_jobs: tuple[JobSpan, ...], began_s: float, add_s: float
) -> tuple[float, float]:
    """The time of `addBatch` without a stage: before the last one ended, and afterwards or in jobs without a stage of
    the query."""
    if not _all_known(spans):
        return NAN, NAN
    last_s = max(end for _, end in spans)
    covered_s = _union_s(spans)
    jobs = [(job.began_s, job.ended_s) for job in other_jobs if job.ended_s <= last_s]
    jobs_s = _union_s([*spans, *jobs]) - covered_s
    lead_s = last_s - min(began_s, min(begin for begin, _ in spans)) - covered_s - jobs_s
    tail_s = began_s + add_s - last_s
    return max(0.0, lead_s), max(0.0, tail_s) + jobs_s


def _all_known(spans: list[tuple[float, float]]) -> bool:
    return bool(spans) and all(math.isfinite(value) for span in spans for value in span)


def _union_s(spans: list[tuple[float, float]]) -> float:
    total_s, reached_s = 0.0, -math.inf
    for begin, end in sorted(spans):
        total_s += max(0.0, end - max(begin, reached_s))
        reached_s = max(reached_s, end)
    return total_s
