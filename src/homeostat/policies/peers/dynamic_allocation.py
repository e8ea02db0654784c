"""Spark's core dynamic allocation (ExecutorAllocationManager): re-implementation of the published rule.

need = ⌈(pending + running tasks) ÷ slots per executor⌉. While tasks have waited for longer than a second it adds 1, 2,
4 … executors each second, up to the need. It removes an executor that had no task for 60 s. It does not know rates: on
a dataflow, where a task is an instance with work that never ends, it can only remove instances without work.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.policy_definition import Policy
from homeostat.core.view import View, Window
from homeostat.policies.peers.measurements import Unit, recent, slots_per_worker, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings

# Doublings that are computed: beyond them the number exceeds any cluster.
_MOST_DOUBLINGS = 30


@dataclass(frozen=True, slots=True)
class DynamicAllocationSettings:
    """Defaults as shipped (spark.dynamicAllocation.*)."""

    # How often the rule is applied; Spark applies it every 100 ms. Ours: batches are observed about as often.
    cadence_s: float = 10.0
    # How long tasks wait before executors are added, and between two additions (schedulerBacklogTimeout).
    backlog_s: float = 1.0
    # How long an executor has no task before it is removed (executorIdleTimeout).
    idle_s: float = 60.0

    def __post_init__(self) -> None:
        check_settings(self, positive=("cadence_s", "backlog_s", "idle_s"))


@dataclass(frozen=True, slots=True)
class DynamicAllocationRule:
    settings: DynamicAllocationSettings = DynamicAllocationSettings()
    name: str = "spark-dynamic-allocation"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        if not view.current:
            return ()
        targets = [self._executors(view, u) if view.micro_batch else self._instances(view, u) for u in units(view)]
        return [target for target in targets if target is not None]

    def _executors(self, view: View, unit: Unit) -> Target | None:
        slots = slots_per_worker(view)
        stages = [c for name, c in view.current[-1].components.items() if name in unit.touched]
        need = max((math.ceil(c.instances / slots) for c in stages), default=0)
        waiting = [c.span_s for c in stages if c.instances > unit.now * slots and math.isfinite(c.span_s)]
        seconds = math.floor(max(waiting, default=0.0) / self.settings.backlog_s)
        extra = 2 ** min(seconds, _MOST_DOUBLINGS) - 1
        target = max(unit.now, min(need, unit.now + extra))
        evidence = {"executors needed": float(need), "backlog_s": max(waiting, default=0.0)}
        if target > unit.now or not recent(view, self.settings.idle_s):
            return Target(unit, target, evidence)
        idle = _idle_workers(view.window.since(view.now_s - self.settings.idle_s))
        return Target(unit, max(1, unit.now - idle), {**evidence, "idle executors": float(idle)})

    def _instances(self, view: View, unit: Unit) -> Target | None:
        if not recent(view, self.settings.idle_s):
            return None
        window = view.window.since(view.now_s - self.settings.idle_s)
        rows, pending = window.tasks(unit.component, "rows"), window.tasks(unit.component, "pending_rows")
        if not rows.size:
            return None
        # An instance that is not known to be idle counts as working.
        working = int(((np.nan_to_num(rows, nan=1.0) > 0) | (np.nan_to_num(pending, nan=1.0) > 0)).any(axis=0).sum())
        minimum = math.ceil(view.spec(unit.knob).minimum)
        return Target(unit, max(minimum, min(working, unit.now)), {"instances with work": float(working)})


def _idle_workers(window: Window) -> int:
    """Workers of the latest observation that are alive and ran no task in the window."""
    latest = window.latest
    if latest is None:
        return 0
    busy = {
        observation.workers.ids[int(number)]
        for observation in window.observations
        for sample in observation.tasks.values()
        for number in np.unique(sample.worker[sample.worker >= 0])
    }
    alive = {name for name, up in zip(latest.workers.ids, latest.workers.alive, strict=True) if up}
    return len(alive - busy)


def spark_dynamic_allocation(settings: DynamicAllocationSettings | None = None) -> Policy:
    """Spark dynamic allocation: sizes executors by tasks."""
    settings = settings or DynamicAllocationSettings()
    return rule_policy(
        DynamicAllocationRule(settings), cadence_s=settings.cadence_s, settle_s=0.0, window_s=2 * settings.idle_s
    )
