"""A running batch: its stages one after the other, replanned whenever executors are added, removed or lost."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import inf

import numpy as np

from homeostat.core.observation import NAN, Array, IntArray, JobSpan, KeyLoad, TaskFailure, TaskSample
from homeostat.sim.microbatch.burdened_scheduling import burdened_schedule
from homeostat.sim.microbatch.burdens import Burden
from homeostat.sim.microbatch.stages import Work
from homeostat.sim.microbatch.task_scheduling import NOWHERE, Placement, Slot, schedule
from homeostat.sim.scenario.spec import ComponentSpec

EXECUTOR_LOST = "ExecutorLostFailure (executor exited unrelated to the running tasks)"
# Returns the free slots, given the times until which running tasks keep slots of each executor busy, and the earliest
# start.
FreeSlots = Callable[[Mapping[int, list[float]], float], list[Slot]]


@dataclass(slots=True)
class Stage:
    """The tasks of one component in one batch. Times are on the engine's clock.

    `largest_key` is the share of the rows that have the most frequent key.
    """

    spec: ComponentSpec
    work: Work
    started_s: float
    wait_until_s: float
    homes: IntArray | None
    is_sink: bool
    largest_key: float = NAN
    burden: Burden | None = None
    placement: Placement = field(init=False)
    delay_s: Array = field(init=False)
    frozen_s: Array = field(init=False)
    lost_attempts: Array = field(init=False)
    lost_s: Array = field(init=False)

    def __post_init__(self) -> None:
        tasks = len(self.work.rows)
        self.placement = Placement(np.full(tasks, NOWHERE, dtype=np.int64), np.full(tasks, inf), np.full(tasks, inf))
        self.delay_s, self.frozen_s = np.zeros(tasks), np.zeros(tasks)
        self.lost_attempts, self.lost_s = np.zeros(tasks), np.zeros(tasks)

    @property
    def end_s(self) -> float:
        return self.placement.end_s

    def plan(self, now_s: float, free_slots: FreeSlots, earliest_s: float) -> None:
        """Place all tasks that have not started. Tasks that have started stay where they are."""
        placement = self.placement
        open_tasks = np.flatnonzero(placement.start_s >= now_s)
        if not len(open_tasks):
            return
        running = (placement.start_s < now_s) & (placement.finish_s > now_s)
        busy: dict[int, list[float]] = {}
        for executor, finish_s in zip(
            placement.executor[running].tolist(), placement.finish_s[running].tolist(), strict=True
        ):
            busy.setdefault(executor, []).append(finish_s)
        homes = None if self.homes is None else self.homes[open_tasks]
        work_s, slots = self.work.seconds[open_tasks], free_slots(busy, earliest_s)
        if self.burden is None:
            new_placement = schedule(work_s, slots, homes, self.wait_until_s)
        else:
            fixed_s, dispatch_s = self.burden.fixed_s[open_tasks], self.burden.dispatch_s
            new_placement, self.delay_s[open_tasks] = burdened_schedule(
                work_s, fixed_s, dispatch_s, slots, homes, self.wait_until_s
            )
        placement.executor[open_tasks] = new_placement.executor
        placement.start_s[open_tasks] = new_placement.start_s
        placement.finish_s[open_tasks] = new_placement.finish_s

    def lose(self, executor: int, now_s: float) -> None:
        """The executor is gone: its running tasks start again, and so do finished ones whose output others need."""
        placement = self.placement
        lost = placement.executor == executor
        running = lost & (placement.start_s < now_s) & (placement.finish_s > now_s)
        self.lost_attempts[running] += 1
        self.lost_s[running] += now_s - placement.start_s[running]
        if self.is_sink:
            lost &= placement.finish_s > now_s
        placement.executor[lost] = NOWHERE
        placement.start_s[lost] = inf
        placement.finish_s[lost] = inf

    def freeze(self, from_s: float, until_s: float) -> None:
        """Nothing runs between these two moments: running tasks take longer by this time, and the others start
        later."""
        placement, delay_s = self.placement, until_s - from_s
        self.frozen_s[(placement.start_s <= from_s) & (placement.finish_s > from_s)] += delay_s
        placement.finish_s[placement.finish_s > from_s] += delay_s
        placement.start_s[placement.start_s > from_s] += delay_s

    @property
    def keys(self) -> KeyLoad:
        rows = float(self.work.rows.sum())
        return KeyLoad(rows, round(self.largest_key * rows))

    @property
    def run_s(self) -> Array:
        """The time in which each task counts as running."""
        on_slot_s: Array = self.placement.finish_s - self.placement.start_s
        return on_slot_s if self.burden is None else np.maximum(0.0, on_slot_s - self.burden.outer_s)

    @property
    def rows_out(self) -> Array:
        rows = self.spec.rows_out(self.work.rows)
        return rows if self.burden is None else rows * self.burden.rows_out_factor

    def failures(self) -> list[TaskFailure]:
        """The attempts that failed, by their reason."""
        counts = [(EXECUTOR_LOST, self.lost_attempts)]
        if self.burden is not None:
            counts.append((self.burden.failure_reason, self.burden.failures))
        return [
            TaskFailure(self.spec.name, int(partition), reason, int(count[partition]))
            for reason, count in counts
            for partition in np.flatnonzero(count)
        ]

    def sample(self, worker_index: Mapping[int, int]) -> TaskSample:
        placement, rows = self.placement, self.work.rows
        workers = np.array([worker_index.get(executor, -1) for executor in placement.executor.tolist()], dtype=np.int64)
        unknown = np.full(len(rows), NAN)
        return TaskSample(
            rows=rows,
            run_s=self.run_s,
            rows_out=self.rows_out,
            pending_rows=unknown,
            pressured_s=unknown,
            finish_s=placement.finish_s - self.started_s,
            worker=workers,
        )


@dataclass(slots=True)
class Batch:
    """`stages` holds the finished stages and, last, the present one."""

    number: int
    taken_rows: Mapping[str, int]
    rows: Mapping[str, int]
    started_s: float
    driver_s: float
    slowness: float
    stages: list[Stage] = field(default_factory=list)
    in_stage: bool = False
    added_s: float = NAN
    blocked_until_s: float = 0.0
    redo_s: list[float] = field(default_factory=list)
    delays_s: Mapping[str, float] = field(default_factory=dict)
    other_jobs: tuple[JobSpan, ...] = ()

    @property
    def planned_s(self) -> float:
        """How long the driver works before the first stage."""
        return self.driver_s + sum(self.delays_s.values())

    def surplus_rows(self, inputs: Sequence[str]) -> int:
        """The rows that finished stages sent beyond the usual output of their components."""
        stages = [stage for stage in self.stages if stage.spec.name in inputs and stage.burden is not None]
        return round(sum(float((stage.rows_out - stage.spec.rows_out(stage.work.rows)).sum()) for stage in stages))

    @property
    def idle(self) -> bool:
        return not any(self.taken_rows.values())

    def plan(self, now_s: float, free_slots: FreeSlots) -> float:
        """Plan the present stage. Returns when it will end."""
        self._redo(now_s, free_slots)
        self.stages[-1].plan(now_s, free_slots, max(now_s, self.blocked_until_s))
        return self.stages[-1].end_s

    def freeze(self, now_s: float, until_s: float) -> float:
        """Hold up the present stage. Returns when it will end."""
        from_s = max(now_s, self.blocked_until_s)
        if until_s > from_s:
            self.stages[-1].freeze(from_s, until_s)
            self.blocked_until_s = until_s
        return self.stages[-1].end_s

    def lose(self, executor: int, now_s: float) -> None:
        """Repeat what ran on that executor, in the present stage and in earlier ones."""
        for stage in self.stages[:-1]:
            self.redo_s += stage.work.seconds[stage.placement.executor == executor].tolist()
        self.stages[-1].lose(executor, now_s)

    def _redo(self, now_s: float, free_slots: FreeSlots) -> None:
        if self.redo_s and (slots := free_slots({}, now_s)):
            redone_s = schedule(np.array(self.redo_s), slots).end_s
            self.blocked_until_s = max(self.blocked_until_s, redone_s)
            self.redo_s = []

    def phases_s(self, ended_s: float) -> dict[str, float]:
        """How long each part took, under Spark's names."""
        if self.idle:
            return {"latestOffset": self.planned_s}
        # How Spark's driver divides its time, roughly; only the sum matters to the loop.
        phases_s = {
            "latestOffset": 0.1 * self.driver_s,
            "queryPlanning": 0.6 * self.driver_s,
            "walCommit": 0.3 * self.driver_s,
            "addBatch": self.added_s - self.started_s - self.planned_s,
            "commitOffsets": ended_s - self.added_s,
        }
        for phase, seconds in self.delays_s.items():
            phases_s[phase] += seconds
        return phases_s
