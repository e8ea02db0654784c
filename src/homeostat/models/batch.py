"""What micro-batches took: a fixed part, and stages whose tasks ran in waves. What others would take, `replay` says."""

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
_MOST_FIXED = 0.5
_MOST_STARTING = 0.8


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of a typical batch: it took `span_s`, its mean task `mean_s`, of which `task_s` are there whatever its
    rows."""

    span_s: float
    mean_s: float
    partitions: int
    task_s: float = 0.0

    def starting_s(self, slots: float) -> float:
        """The part of the stage that does not depend on rows."""
        return waves_of(self.partitions, slots) * self.task_s


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
    def seconds(self) -> float:
        """A batch like the latest ones."""
        return self.driver_s + sum(stage.span_s for stage in self.stages.values())

    @property
    def fixed_s(self) -> float:
        """What it takes whatever its rows."""
        return self.driver_s + sum(stage.starting_s(self.slots) for stage in self.stages.values())

    @property
    def bottleneck(self) -> str:
        return max(self.stages, key=lambda name: self.stages[name].span_s)

    def capacity_per_s(self, trigger_s: float, row_s: float) -> float:
        return _capacity_per_s(trigger_s, self.fixed_s, row_s)


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
    span_s, mean_s, task_s = map(median, np.array([(s.span_s, s.mean_s, s.task_s) for s in stages]).T)
    return StageTime(span_s, mean_s, stages[-1].partitions, task_s)


def one_batch(view: View, digest: Digest) -> BatchTime | None:
    measured = {n: c for n, c in digest.components.items() if math.isfinite(c.span_s) and c.known >= _LEAST_KNOWN}
    if not (digest.rows > 0 and math.isfinite(digest.seconds) and measured):
        return None
    slots = max(1.0, slots_of(view))
    costs = task_costs(view)
    stages = {name: _stage(c, slots, costs.get(name, 0.0)) for name, c in measured.items()}
    span_s = sum(stage.span_s for stage in stages.values())
    even_s = sum(waves_of(stage.partitions, slots) * stage.mean_s for stage in stages.values())
    starting_s = sum(stage.starting_s(slots) for stage in stages.values())
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
    return StageTime(component.span_s, mean_s, partitions, min(task_s, most_s))


def _mean_s(component: ComponentDigest) -> float:
    return component.run_s / component.instances if component.instances else 0.0


def slots_of(view: View) -> float:
    latest = view.window.latest
    return float(latest.workers.slots.sum()) if latest is not None else 1.0
