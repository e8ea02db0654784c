"""How long a micro-batch takes: a fixed part, and stages whose tasks run in waves on shared slots."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from homeostat.core.digest import ComponentDigest, Digest
from homeostat.core.observation import NAN
from homeostat.core.stats import median
from homeostat.core.view import View
from homeostat.models.tasktime import task_costs

_RECENT = 6
_LEAST_KNOWN = 0.5
_ROUNDING = 1e-9
_EVEN = 1.5
_MOST_FIXED = 0.5
_MOST_STARTING = 0.8


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of a typical batch: it took `span_s`, its longest task `busiest_s`, its mean one `mean_s`; of each task
    `task_s` are there whatever its rows."""

    span_s: float
    busiest_s: float
    mean_s: float
    partitions: int
    task_s: float = 0.0

    def starting_s(self, slots: float, partitions: int) -> float:
        """The part of the stage that does not depend on rows."""
        return waves_of(partitions, slots) * self.task_s

    def seconds(self, slots: float, then: float, partitions: int) -> float:
        """On `then` slots instead of `slots` and with so many partitions.

        More partitions make each task shorter, unless one of them stands out now: its key stays as hot as it is.
        """
        share = self.partitions / partitions
        longest_s = min(self.span_s, self.busiest_s)
        if self.busiest_s <= _EVEN * self.mean_s:
            longest_s = self.task_s + max(0.0, longest_s - self.task_s) * share
        waves = waves_of(partitions, then) / waves_of(self.partitions, slots)
        rows_s = max(0.0, self.span_s - self.starting_s(slots, self.partitions))
        return max(longest_s, self.starting_s(then, partitions) + rows_s * waves * share)


def waves_of(partitions: int, slots: float) -> int:
    return max(1, math.ceil(partitions / slots - _ROUNDING))


@dataclass(frozen=True, slots=True)
class BatchTime:
    """A batch of `rows` takes fixed_s + rows · row_s; with every task alike and evenly spread, even_row_s a row.

    `driver_s` lies beside the stages: planning, logging, committing.
    """

    driver_s: float
    row_s: float
    even_row_s: float
    rows: float
    slots: float
    stages: Mapping[str, StageTime] = field(default_factory=dict)

    @property
    def fixed_s(self) -> float:
        return self.fixed_with(1.0)

    @property
    def bottleneck(self) -> str:
        return max(self.stages, key=lambda name: self.stages[name].span_s)

    def evened(self, stage: str) -> BatchTime:
        """As if the rows of that stage were spread evenly over its tasks."""
        now = self.stages[stage]
        span_s = min(now.span_s, waves_of(now.partitions, self.slots) * now.mean_s)
        return replace(self, stages={**self.stages, stage: replace(now, span_s=span_s, busiest_s=now.mean_s)})

    def seconds(self, factor: float, partitions: Mapping[str, int] | None = None) -> float:
        """A batch like the latest ones, with so many times the slots, and other partitions where they are named."""
        named = partitions or {}
        then = self.slots * factor
        stages = self.stages.items()
        return self.driver_s + sum(s.seconds(self.slots, then, named.get(name, s.partitions)) for name, s in stages)

    def fixed_with(self, factor: float, partitions: Mapping[str, int] | None = None) -> float:
        """What such a batch takes whatever its rows."""
        named = partitions or {}
        then = self.slots * factor
        stages = self.stages.items()
        return self.driver_s + sum(s.starting_s(then, named.get(name, s.partitions)) for name, s in stages)

    def seconds_at_speed(self, factor: float) -> float:
        """A batch like the latest ones, if its tasks as a whole were so many times faster."""
        return self.driver_s + (self.fixed_s - self.driver_s + self.row_s * self.rows) / factor

    def capacity_per_s(self, trigger_s: float, row_s: float) -> float:
        return _capacity_per_s(trigger_s, self.fixed_s, row_s)

    def capacity_with(self, trigger_s: float, factor: float, partitions: Mapping[str, int] | None = None) -> float:
        fixed_s = self.fixed_with(factor, partitions)
        return _capacity_per_s(trigger_s, fixed_s, (self.seconds(factor, partitions) - fixed_s) / self.rows)


def _capacity_per_s(trigger_s: float, fixed_s: float, row_s: float) -> float:
    """The rate at which a batch takes just as long as its rows took to arrive; unknown if rows took no time.

    Where the fixed part leaves hardly any room within the trigger, batches that take longer are better than a
    multitude of executors: half of the time may go to it.
    """
    if row_s <= 0:
        return NAN
    if not (math.isfinite(trigger_s) and trigger_s > 0):
        return 1.0 / row_s
    period_s = max(trigger_s, fixed_s / _MOST_FIXED)
    return (period_s - fixed_s) / (row_s * period_s)


def batch_time(view: View, last: int = _RECENT) -> BatchTime | None:
    """Median over the latest batches that had rows."""
    fits = [one for d in view.current[-last:] if (one := one_batch(view, d)) is not None]
    if not fits:
        return None
    columns = np.array([(f.driver_s, f.row_s, f.even_row_s, f.rows) for f in fits])
    driver_s, row_s, even_row_s, rows = map(float, np.median(columns, axis=0))
    stages = {name: _typical([f.stages[name] for f in fits if name in f.stages]) for name in fits[-1].stages}
    return replace(fits[-1], driver_s=driver_s, row_s=row_s, even_row_s=even_row_s, rows=rows, stages=stages)


def _typical(stages: list[StageTime]) -> StageTime:
    columns = np.array([(s.span_s, s.busiest_s, s.mean_s, s.task_s) for s in stages])
    span_s, busiest_s, mean_s, task_s = map(median, columns.T)
    return StageTime(span_s, busiest_s, mean_s, stages[-1].partitions, task_s)


def one_batch(view: View, digest: Digest) -> BatchTime | None:
    measured = {n: c for n, c in digest.components.items() if math.isfinite(c.span_s) and c.known >= _LEAST_KNOWN}
    if not (digest.rows > 0 and math.isfinite(digest.seconds) and measured):
        return None
    slots = max(1.0, slots_of(view))
    costs = task_costs(view)
    stages = {name: _stage(c, slots, costs.get(name, 0.0)) for name, c in measured.items()}
    span_s = sum(stage.span_s for stage in stages.values())
    even_s = sum(waves_of(stage.partitions, slots) * stage.mean_s for stage in stages.values())
    starting_s = sum(stage.starting_s(slots, stage.partitions) for stage in stages.values())
    return BatchTime(
        driver_s=max(0.0, digest.seconds - span_s),
        row_s=(span_s - starting_s) / digest.rows,
        even_row_s=max(0.0, min(even_s, span_s) - starting_s) / digest.rows,
        rows=digest.rows,
        slots=slots,
        stages=stages,
    )


def _stage(component: ComponentDigest, slots: float, task_s: float) -> StageTime:
    partitions = max(1, component.instances)
    mean_s = _mean_s(component)
    most_s = _MOST_STARTING * min(component.span_s / waves_of(partitions, slots), mean_s)
    return StageTime(component.span_s, component.busiest_s, mean_s, partitions, min(task_s, most_s))


def _mean_s(component: ComponentDigest) -> float:
    return component.run_s / component.instances if component.instances else 0.0


def slots_of(view: View) -> float:
    latest = view.window.latest
    return float(latest.workers.slots.sum()) if latest is not None else 1.0
