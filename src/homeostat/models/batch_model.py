"""How long micro-batches took: a fixed part, and stages whose tasks ran in waves.

`batch_replay` predicts how long batches would take in other configurations.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from homeostat.core.evidence_limits import LEAST_KNOWN
from homeostat.core.history import History
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median
from homeostat.core.view import View
from homeostat.models.task_times import MOST_FIXED_OF_TASK, task_costs

# The number of latest observations that count as "now": more give steadier values, fewer follow a change sooner. A
# choice.
RECENT = 6
# The largest share of a period that may go to fixed costs. Where the fixed costs fill the trigger interval, longer
# batches are cheaper than many more executors. A choice.
MOST_FIXED = 0.5

# The noise of the capacity is fitted to at least this many batches: differences need many values. A choice.
_NOISE_BATCHES = 120
_ROUNDING = 1e-9


@dataclass(frozen=True, slots=True)
class StageTime:
    """One stage of a typical batch. The stage took `span_s` and its mean task took `mean_s`, of which `task_s` does not
    depend on the rows."""

    span_s: float
    mean_s: float
    partitions: int
    task_s: float = 0.0

    def starting_s(self, slots: float) -> float:
        """The part of the stage's time that does not depend on rows."""
        return waves_of(self.partitions, slots) * self.task_s


def waves_of(partitions: int, slots: float) -> int:
    return max(1, math.ceil(partitions / slots - _ROUNDING))


@dataclass(frozen=True, slots=True)
class BatchTime:
    """A batch of `rows` takes fixed_s + rows · row_s. If all tasks took equally long, a row would take even_row_s.

    `driver_s` is the time outside the stages: planning, logging, committing.
    """

    driver_s: float
    row_s: float
    even_row_s: float
    rows: float
    slots: float
    stages: Mapping[str, StageTime] = field(default_factory=dict)

    @property
    def seconds(self) -> float:
        """Duration of a batch like the latest ones."""
        return self.driver_s + sum(stage.span_s for stage in self.stages.values())

    @property
    def fixed_s(self) -> float:
        """The part of the duration that does not depend on rows."""
        return self.driver_s + sum(stage.starting_s(self.slots) for stage in self.stages.values())

    @property
    def bottleneck(self) -> str:
        return max(self.stages, key=lambda name: self.stages[name].span_s)

    def capacity_per_s(self, trigger_s: float, row_s: float) -> float:
        return float(_capacity_per_s(np.array(trigger_s), np.array(self.fixed_s), np.array(row_s)))


def batches_for_noise(view: View) -> int:
    """Return to how many of the latest batches the noise is fitted: all of the present configuration, and older ones if
    these are too few."""
    return min(len(view.history), max(_NOISE_BATCHES, len(view.current)))


def capacities_per_s(view: View) -> Array:
    """Return the capacity with the present slots, computed from each of these latest batches; NaN for unusable ones."""
    columns = view.once("batch columns", _columns)
    trigger_s = view.numbers.flow("trigger_s", batches_for_noise(view))
    return np.where(
        columns.usable, _capacity_per_s(trigger_s, columns.driver_s + columns.starting_s, columns.row_s), NAN
    )


def _capacity_per_s(trigger_s: Array, fixed_s: Array, row_s: Array) -> Array:
    """The rate at which a batch takes exactly as long as its rows took to arrive; NaN if rows took no time.

    If the fixed part nearly fills the trigger interval, the period grows until only `MOST_FIXED` of it is fixed.
    """
    with np.errstate(divide="ignore", invalid="ignore"):
        period_s = np.maximum(trigger_s, fixed_s / MOST_FIXED)
        has_trigger = np.isfinite(trigger_s) & (trigger_s > 0)
        for_rows = np.where(has_trigger, (period_s - fixed_s) / period_s, 1.0)
        return np.where(row_s > 0, for_rows / row_s, NAN)


def batch_time(view: View, last: int = RECENT) -> BatchTime | None:
    """Return the median over the latest batches that had rows; None if there are none."""
    columns = view.once("batch columns", _columns).last(min(last, len(view.current)))
    if not columns.usable.any():
        return None
    latest = int(np.flatnonzero(columns.usable)[-1])
    driver_s, row_s, even_row_s, rows = (
        median(column[columns.usable]) for column in (columns.driver_s, columns.row_s, columns.even_row_s, columns.rows)
    )
    stages = {name: stage.typical(columns.usable) for name, stage in columns.stages.items() if stage.measured[latest]}
    return BatchTime(driver_s, row_s, even_row_s, rows, columns.slots, stages)


@dataclass(frozen=True, slots=True)
class _Stage:
    """One stage over many batches; 0 where it was not measured."""

    measured: NDArray[np.bool_]
    span_s: Array
    mean_s: Array
    partitions: Array
    waves: Array
    task_s: Array

    def last(self, count: int) -> _Stage:
        newest = slice(len(self.measured) - count, None)
        return _Stage(
            self.measured[newest],
            self.span_s[newest],
            self.mean_s[newest],
            self.partitions[newest],
            self.waves[newest],
            self.task_s[newest],
        )

    def typical(self, usable: NDArray[np.bool_]) -> StageTime:
        chosen = usable & self.measured
        span_s, mean_s, task_s = (median(column[chosen]) for column in (self.span_s, self.mean_s, self.task_s))
        return StageTime(span_s, mean_s, int(self.partitions[chosen][-1]), task_s)


@dataclass(frozen=True, slots=True)
class _Columns:
    """Many batches, one entry each. Batches without rows or measurements are not `usable`."""

    usable: NDArray[np.bool_]
    rows: Array
    driver_s: Array
    starting_s: Array
    row_s: Array
    even_row_s: Array
    slots: float
    stages: Mapping[str, _Stage]

    def last(self, count: int) -> _Columns:
        newest = slice(len(self.usable) - count, None)
        return _Columns(
            self.usable[newest],
            self.rows[newest],
            self.driver_s[newest],
            self.starting_s[newest],
            self.row_s[newest],
            self.even_row_s[newest],
            self.slots,
            {name: stage.last(count) for name, stage in self.stages.items()},
        )


def _columns(view: View) -> _Columns:
    slots, costs, last = max(1.0, slots_of(view)), task_costs(view), batches_for_noise(view)
    stages = {name: _stage(view.numbers, name, last, slots, costs.get(name, 0.0)) for name in view.numbers.components}
    rows, seconds = view.numbers.flow("rows", last), view.numbers.flow("seconds", last)
    span_s, even_s, starting_s, measured = np.zeros((4, last))
    for stage in stages.values():
        span_s += stage.span_s
        even_s += stage.waves * stage.mean_s
        starting_s += stage.waves * stage.task_s
        measured += stage.measured
    with np.errstate(divide="ignore", invalid="ignore"):
        return _Columns(
            usable=(rows > 0) & np.isfinite(seconds) & (measured > 0),
            rows=rows,
            driver_s=np.maximum(0.0, seconds - span_s),
            starting_s=starting_s,
            row_s=(span_s - starting_s) / rows,
            even_row_s=np.maximum(0.0, np.minimum(even_s, span_s) - starting_s) / rows,
            slots=slots,
            stages=stages,
        )


def _stage(numbers: History, name: str, last: int, slots: float, task_s: float) -> _Stage:
    span_s, run_s = numbers.part(name, "span_s", last), numbers.part(name, "run_s", last)
    measured = np.isfinite(span_s) & (numbers.part(name, "known_share", last) >= LEAST_KNOWN)
    partitions = np.fmax(1.0, numbers.part(name, "instances", last))
    span_s, mean_s = np.where(measured, span_s, 0.0), np.where(measured, run_s, 0.0) / partitions
    waves = np.maximum(1.0, np.ceil(partitions / slots - _ROUNDING))
    most_s = MOST_FIXED_OF_TASK * np.minimum(span_s / waves, mean_s)
    return _Stage(measured, span_s, mean_s, partitions, waves, np.minimum(task_s, most_s))


def slots_of(view: View) -> float:
    latest = view.window.latest
    return float(latest.workers.slots.sum()) if latest is not None else 1.0
