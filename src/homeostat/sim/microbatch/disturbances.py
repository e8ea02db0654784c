"""The effects of the faults of a scenario on the parts of a batch at one moment."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from math import inf

from homeostat.sim.scenario.fault_targets import concerns
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec

# Windows leave the state when the watermark passes them. A healthy state holds the windows of this time. A choice.
RETENTION_S = 600.0
# A state that is twice as large makes each row more expensive by this share: more levels to read, more to compact. A
# choice.
STATE_COST = 0.25
# To list a file, the driver needs this share of the time that opening the file takes. A choice.
LISTING_PART = 0.25
# Garbage collection adds this share to the work if half of the heap is in use. The share grows with used ÷ free memory,
# like the cost of tracing the live objects each time the heap is full. The heap is never fuller than the second value.
GC_SHARE = 0.1
FULLEST_HEAP = 0.99
# A growing fault is rounded to this many digits, so that moments close to each other share computed results.
DIGITS = 4


@dataclass(frozen=True, slots=True)
class TaskBurden:
    """The burden of the tasks of one component. With the defaults there is none.

    `store_row_s` is the time for each row of the state or, if the store writes only changes, for each changed row.
    """

    row_factor: float = 1.0
    wait_s: float = 0.0
    row_wait_s: float = 0.0
    fetch_row_s: float = 0.0
    store_s: float = 0.0
    store_row_s: float = 0.0
    stores_changes: bool = False
    state_growth: float = 1.0
    late_share: float = 0.0
    heap_rows: float = inf
    spill_rows: float = inf
    spill_row_s: float = 0.0
    result_row_s: float = 0.0
    file_rows: float = inf
    file_s: float = 0.0
    failing_share: float = 0.0
    costly: tuple[tuple[int, float], ...] = ()
    exploding: tuple[tuple[int, float], ...] = ()
    poisoned: tuple[tuple[int, int], ...] = ()
    hanging: tuple[tuple[int, float], ...] = ()

    @property
    def stores(self) -> bool:
        """Whether the state store burdens the tasks."""
        return self.store_s > 0 or self.store_row_s > 0

    def with_changelog(self, commit_share: float) -> TaskBurden:
        return replace(self, store_s=commit_share * self.store_s, stores_changes=True)


@dataclass(frozen=True, slots=True)
class Disturbance:
    """The burden of a batch. `tasks` has the burden of the tasks by component, `contention` the share of the CPU that
    other processes take, by host."""

    source_s: float = 0.0
    planning_s: float = 0.0
    wal_s: float = 0.0
    commit_s: float = 0.0
    driver_heap: float = 0.0
    dispatch_s: float = 0.0
    collect_row_s: float = 0.0
    sink_s: float = 0.0
    sink_row_s: float = 0.0
    sink_job: bool = False
    watermark_stalled_s: float = inf
    contention: tuple[tuple[str, float], ...] = ()
    tasks: tuple[tuple[str, TaskBurden], ...] = ()

    def burden(self, component: str) -> TaskBurden:
        return next((burden for name, burden in self.tasks if name == component), NO_BURDEN)

    def cpu_share(self, host: str) -> float:
        """The share of the CPU of this host that is left for its executors."""
        left_share = 1.0
        for name, share in self.contention:
            left_share *= 1.0 - share if name in ("", host) else 1.0
        return left_share

    @property
    def driver_gc(self) -> float:
        """The share that garbage collection adds to the time of the driver."""
        return gc_share(self.driver_heap)

    def with_changelog(self, commit_share: float) -> Disturbance:
        """A commit writes only the changes of the batch, and this share of its fixed cost remains."""
        tasks = tuple(
            (name, burden.with_changelog(commit_share) if burden.stores else burden) for name, burden in self.tasks
        )
        return replace(self, tasks=tasks)


NO_BURDEN = TaskBurden()
CALM = Disturbance()


def gc_share(heap_use: float) -> float:
    """The share that garbage collection adds to the work, by the share of the heap that is in use."""
    use = min(heap_use, FULLEST_HEAP)
    return GC_SHARE * use / (1.0 - use)


def strength(fault: FaultSpec, t_s: float) -> float:
    """How strong a fault is, relative to its strength at the start."""
    return float(f"{1.0 + fault.growth * (t_s - fault.at_s) / 3600.0:.{DIGITS}g}")


def disturbance(
    faults: Sequence[FaultSpec], components: Sequence[ComponentSpec], t_s: float, dispatch_s: float = 0.0
) -> Disturbance:
    """The effect of these faults, all of them active, on a batch at this moment.

    `dispatch_s` is the time that the driver needs to start a task without any fault.
    """
    now, burdens = Disturbance(dispatch_s=dispatch_s), {component.name: NO_BURDEN for component in components}
    for fault in faults:
        times = strength(fault, t_s)
        if fault.kind in _BATCH:
            now = _BATCH[fault.kind](now, fault, times)
        if fault.kind in _TASKS:
            for component in components:
                if concerns(fault, component):
                    burdens[component.name] = _TASKS[fault.kind](burdens[component.name], fault, times, t_s)
    tasks = tuple((name, burden) for name, burden in burdens.items() if burden != NO_BURDEN)
    return replace(now, tasks=tasks)


BatchMechanism = Callable[[Disturbance, FaultSpec, float], Disturbance]
TaskMechanism = Callable[[TaskBurden, FaultSpec, float, float], TaskBurden]


def _slow_sink(now: Disturbance, fault: FaultSpec, times: float) -> Disturbance:
    return replace(
        now,
        sink_s=now.sink_s + times * fault.seconds,
        sink_row_s=now.sink_row_s + times * fault.row_s,
        sink_job=now.sink_job or fault.job,
    )


def _slow_commit(now: Disturbance, fault: FaultSpec, times: float) -> Disturbance:
    """The log of offsets and the log of commits are files in the same storage: half of the time each."""
    each_s = times * fault.seconds / 2
    return replace(now, wal_s=now.wal_s + each_s, commit_s=now.commit_s + each_s)


def _stalled_watermark(burden: TaskBurden, fault: FaultSpec, _: float, t_s: float) -> TaskBurden:
    return _larger_state(burden, 1.0 + (t_s - fault.at_s) / RETENTION_S)


def _larger_state(burden: TaskBurden, times: float) -> TaskBurden:
    growth = float(f"{burden.state_growth * times:.{DIGITS}g}")
    dearer = (1.0 + STATE_COST * (growth - 1.0)) / (1.0 + STATE_COST * (burden.state_growth - 1.0))
    return replace(burden, state_growth=growth, row_factor=burden.row_factor * dearer)


_BATCH: dict[str, BatchMechanism] = {
    "slow-sink": _slow_sink,
    "slow-commit": _slow_commit,
    "slow-planning": lambda now, fault, times: replace(now, planning_s=now.planning_s + times * fault.seconds),
    "slow-source": lambda now, fault, times: replace(now, source_s=now.source_s + times * fault.seconds),
    "slow-scheduling": lambda now, fault, times: replace(now, dispatch_s=now.dispatch_s + times * fault.task_s),
    "collecting": lambda now, fault, times: replace(now, collect_row_s=now.collect_row_s + times * fault.row_s),
    "driver-memory": lambda now, fault, times: replace(now, driver_heap=max(now.driver_heap, times * fault.share)),
    "contention": lambda now, fault, _: replace(now, contention=(*now.contention, (fault.host, fault.share))),
    "stalled-watermark": lambda now, fault, _: replace(
        now, watermark_stalled_s=min(now.watermark_stalled_s, fault.at_s)
    ),
}
_TASKS: dict[str, TaskMechanism] = {
    "small-files": lambda burden, fault, times, _: replace(
        burden, file_rows=min(burden.file_rows, fault.rows), file_s=burden.file_s + times * fault.file_s
    ),
    "slow-fetch": lambda burden, fault, times, _: _waiting(burden, fault, times),
    "outside-system": lambda burden, fault, times, _: _waiting(burden, fault, times),
    "slow-network": lambda burden, fault, times, _: replace(
        burden, fetch_row_s=burden.fetch_row_s + times * fault.row_s
    ),
    "memory": lambda burden, fault, times, _: replace(burden, heap_rows=min(burden.heap_rows, fault.rows / times)),
    "spill": lambda burden, fault, times, _: replace(
        burden, spill_rows=min(burden.spill_rows, fault.rows), spill_row_s=burden.spill_row_s + times * fault.row_s
    ),
    "state-store": lambda burden, fault, times, _: replace(
        burden,
        store_s=burden.store_s + times * fault.task_s,
        store_row_s=burden.store_row_s + times * fault.row_s,
    ),
    "growing-state": lambda burden, _fault, times, _: _larger_state(burden, times),
    "stalled-watermark": _stalled_watermark,
    "late-rows": lambda burden, fault, _times, _: replace(burden, late_share=max(burden.late_share, fault.share)),
    "rising-cost": lambda burden, _fault, times, _: replace(burden, row_factor=burden.row_factor * times),
    "costly-keys": lambda burden, fault, _times, _: replace(
        burden, costly=(*burden.costly, (fault.instance, fault.factor))
    ),
    "skewed-join": lambda burden, fault, _times, _: replace(
        burden, exploding=(*burden.exploding, (fault.instance, fault.factor))
    ),
    "task-failures": lambda burden, fault, _times, _: replace(
        burden, failing_share=max(burden.failing_share, fault.share)
    ),
    "poison-row": lambda burden, fault, _times, _: replace(
        burden, poisoned=(*burden.poisoned, (fault.instance, fault.attempts))
    ),
    "stuck-task": lambda burden, fault, _times, t_s: replace(
        burden, hanging=(*burden.hanging, (fault.instance, float(f"{fault.until_s - t_s:.{DIGITS}g}")))
    ),
}
BATCH_KINDS, TASK_KINDS = frozenset(_BATCH), frozenset(_TASKS)
DISTURBING_KINDS = BATCH_KINDS | TASK_KINDS
# Faults that end by themselves and do not change how many executors the load needs.
PASSING_KINDS = frozenset({"stuck-task"})


def _waiting(burden: TaskBurden, fault: FaultSpec, times: float) -> TaskBurden:
    return replace(
        burden,
        wait_s=burden.wait_s + times * fault.task_s,
        row_wait_s=burden.row_wait_s + times * fault.row_s,
    )
