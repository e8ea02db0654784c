"""A micro-batch again, in another configuration: its recorded tasks, scaled, in Spark's scheduling order.

A batch is the driver's part (planning, logs, commits) and stage after stage the makespan of its tasks on the slots
there are. Tasks start in the order of their partitions, each on the slot that is free first.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from heapq import heapreplace
from statistics import NormalDist

import numpy as np

from homeostat.core.observation import NAN, Array, IntArray
from homeostat.core.stats import median
from homeostat.models.task_cost import Slowing, TaskCost, busy

DRAWS = 24
DRIVER = "driver"

_EVEN = 1.5
_ALIKE = 1.2
_SEED = 20_261_115
_NO_GAIN = 0.02
_SHARED = 0.1
# Very many tasks are drawn less often: their noise averages out, and time is short.
_FEWEST_DRAWS, _MOST_TASKS = 6, 60_000

# Rows, executors, tasks of each stage, variation of the rows: all that the time of a batch hangs on.
_Asked = tuple[float, int, tuple[int, ...], float]


def makespan_s(seconds: Array, slots: int, factors: tuple[float, ...] = ()) -> float:
    """How long tasks take on so many slots, in order, each on the slot that is free first.

    `factors` are those of the first slots: a task takes so many times longer there.

    >>> makespan_s(np.array([3.0, 1.0, 1.0, 2.0]), 2)
    4.0
    """
    if not len(seconds):
        return 0.0
    slow = any(factor != 1.0 for factor in factors)
    if len(seconds) <= slots and not slow:
        return float(seconds.max())
    if not slow:
        every_s: list[float] = seconds.tolist()
        free_s = sorted(every_s[:slots])
        for task_s in every_s[slots:]:
            heapreplace(free_s, free_s[0] + task_s)
        return max(free_s)
    every = [*factors[:slots], *(1.0,) * (slots - len(factors))]
    heap = [(0.0, number) for number in range(slots)]
    for task_s in seconds.tolist():
        earliest_s, number = heap[0]
        heapreplace(heap, (earliest_s + task_s * every[number], number))
    return max(heap)[0]


def _makespans_s(seconds: Array, slots: int, factors: tuple[float, ...]) -> Array:
    """Of each line of tasks."""
    if seconds.shape[1] <= slots and not factors:
        return np.asarray(seconds.max(axis=1))
    return np.array([makespan_s(line, slots, factors) for line in seconds])


def _roughly_s(seconds: Array, slots: int, factors: tuple[float, ...]) -> float:
    """The makespan; of tasks that are nearly alike, whole waves of the mean one."""
    if factors or len(seconds) <= slots:
        return makespan_s(seconds, slots, factors)
    mean_s = float(seconds.mean())
    alike = float(seconds.max()) <= _ALIKE * mean_s
    return math.ceil(len(seconds) / slots) * mean_s if alike else makespan_s(seconds, slots)


@dataclass(frozen=True, slots=True)
class Setup:
    """What a batch is run with. A stage that is not named keeps its partitions."""

    executors: int
    trigger_s: float
    rows_bound: float = math.inf
    partitions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyCurve:
    """How many different keys are among so many rows: there are `keys` in all, NaN where no keys were counted."""

    keys: float = NAN

    def among(self, rows: float | Array) -> Array:
        if not self.keys > 0:
            return np.zeros_like(rows)
        return distinct_keys(self.keys, rows) if math.isfinite(self.keys) else np.asarray(rows)


def distinct_keys(keys: float | Array, rows: float | Array) -> Array:
    """Among so many rows, if each of so many keys is as likely as the others."""
    return np.asarray(-keys * np.expm1(-rows / keys))


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage as it was recorded.

    `shares` of its rows by task, `rows_per_row` its rows for each row at the sources, `delay_s` what a slot loses
    between two tasks, `noise` ln(measured ÷ predicted) of tasks, a line for each recorded batch, without what the whole
    batch had in common.
    """

    name: str
    cost: TaskCost
    shares: Array
    rows_per_row: float
    noise: Array
    delay_s: float = 0.0
    keys: KeyCurve = KeyCurve()

    @property
    def partitions(self) -> int:
        return len(self.shares)

    @property
    def imbalance(self) -> float:
        return float(self.shares.max()) * self.partitions if self.partitions else 1.0

    def cut_into(self, partitions: int) -> Array:
        """The shares of so many tasks. What stands out now is a hot key's: it stays as hot, whatever the number."""
        if partitions == self.partitions:
            return self.shares
        if self.imbalance <= _EVEN:
            return np.full(partitions, 1.0 / partitions)
        usual = median(self.shares)
        hot = np.sort(np.where(self.shares > _EVEN * usual, self.shares - usual, 0.0))[::-1]
        hot = np.pad(hot[hot > 0][:partitions], (0, max(0, partitions - int((hot > 0).sum()))))
        even = (1.0 - float(hot.sum())) / partitions
        return np.asarray(hot[:partitions] + even)

    def tasks_s(self, rows: float | Array, setup: Setup, slots: int) -> Array:
        """What its tasks are expected to take in a batch that reads so many rows, on executors with so many slots; of
        several batches, a line each."""
        own_rows = np.asarray(rows * self.rows_per_row)[..., np.newaxis]
        each = own_rows * self.cut_into(self.tasks(setup))
        keys: float | Array = 0.0
        if self.cost.key_s > 0:
            # A hash spreads keys evenly, however uneven their rows.
            keys = np.minimum(each, self.keys.among(own_rows) / each.shape[-1])
        return self.cost.seconds(each, keys, busy(setup.executors, each.shape[-1], slots)) + self.delay_s

    def tasks(self, setup: Setup) -> int:
        return max(1, setup.partitions.get(self.name, self.partitions))


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """`parts_s` is what no number of executors takes away; beyond `executors` more of them gain nothing worth it.

    `blame` names the largest part, `why` says what it is.
    """

    executors: int
    parts_s: Mapping[str, float]
    blame: str
    why: str

    @property
    def seconds(self) -> float:
        return sum(self.parts_s.values())


@dataclass(frozen=True)
class BatchModel:
    """Everything needed to replay a batch. `driver_s` and `common` (ln of what a whole batch had in common) have one
    entry for each recorded batch, `slow` the factors of slots that are slower than the others now.

    `rows_seen` is the range of rows of a batch that it was fitted to, `widening` how many times further real batches
    were from the middle than the recorded noise makes them, `pace` how many times longer their stages took than they
    would without noise.
    """

    stages: tuple[Stage, ...]
    driver_s: Array
    common: Array
    slots: int
    setup: Setup
    slow: tuple[float, ...] = ()
    rows_seen: tuple[float, float] = (0.0, math.inf)
    widening: float = 1.0
    pace: float = 1.0

    @cached_property
    def usual_driver_s(self) -> float:
        return median(self.driver_s)

    @cached_property
    def _drawn(self) -> dict[_Asked, Array]:
        """What was asked before: a search comes back to the same setups."""
        return {}

    @cached_property
    def _plain(self) -> dict[_Asked, float]:
        return {}

    def _asked(self, rows: float, setup: Setup, variation: float = 0.0) -> _Asked:
        return rows, setup.executors, tuple(stage.tasks(setup) for stage in self.stages), variation

    def durations_s(self, rows: float, setup: Setup, variation: float = 0.0) -> Array:
        """Sorted seconds of a batch of so many rows, once for each draw of the recorded noise.

        `variation` is the standard deviation of ln(rows), if they are not always as many.
        """
        asked = self._asked(rows, setup, variation)
        if asked not in self._drawn:
            drawn = self._draw_s(rows, setup, variation)
            drawn.setflags(write=False)
            self._drawn[asked] = drawn
        return self._drawn[asked]

    def _draw_s(self, rows: float, setup: Setup, variation: float) -> Array:
        tasks = sum(stage.tasks(setup) for stage in self.stages)
        draws = min(DRAWS, max(_FEWEST_DRAWS, _MOST_TASKS // max(1, tasks)))
        generator = np.random.default_rng(_SEED)
        spread = _quantiles(draws)
        doubt = [generator.permutation(spread) for _ in self.stages]
        taken = rows * np.exp(variation * generator.permutation(spread))
        batches = np.arange(draws) % max(1, len(self.common))
        found = np.resize(self.driver_s, draws)
        for stage, unsure in zip(self.stages, doubt, strict=True):
            whole = self.common[batches] + stage.cost.error * unsure
            noise = _noise(stage, batches, stage.tasks(setup), generator) + whole[:, np.newaxis]
            expected_s = stage.tasks_s(taken if variation > 0 else rows, setup, self.slots)
            found = found + _makespans_s(expected_s * np.exp(noise), self.slots * setup.executors, self.slow)
        middle = median(found)
        return middle * (np.sort(found) / middle) ** self.widening

    def expected_s(self, rows: float, setup: Setup) -> float:
        """The middle of what a batch of so many rows takes."""
        return median(self.durations_s(rows, setup))

    def critical_path(self, rows: float, setup: Setup) -> CriticalPath:
        """What is left of a batch when every task has a slot of its own, and with how many executors that is nearly
        so."""
        widest = max((stage.tasks(setup) for stage in self.stages), default=1)
        most = math.ceil(widest / self.slots)
        enough = self._enough(rows, setup, most)
        then = replace(setup, executors=enough)
        parts_s = {DRIVER: self.usual_driver_s}
        longest_s = {stage.name: float(stage.tasks_s(rows, then, self.slots).max()) for stage in self.stages}
        parts_s |= {name: self.pace * task_s for name, task_s in longest_s.items()}
        blame = max(parts_s, key=lambda name: parts_s[name])
        return CriticalPath(enough, parts_s, blame, self._why(blame, setup, most) + self._sharing())

    def _enough(self, rows: float, setup: Setup, most: int) -> int:
        """The fewest executors that come within 2 % of all that could be of use."""
        best_s = self.plain_s(rows, replace(setup, executors=most))
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            good = self.plain_s(rows, replace(setup, executors=middle)) <= (1 + _NO_GAIN) * best_s
            low, high = (low, middle) if good else (middle + 1, high)
        return low

    def plain_s(self, rows: float, setup: Setup) -> float:
        """What a batch of so many rows takes as a rule: without noise, but at the pace there is."""
        asked = self._asked(rows, setup)
        if asked not in self._plain:
            self._plain[asked] = self.usual_driver_s + sum(self.stage_s(stage, rows, setup) for stage in self.stages)
        return self._plain[asked]

    def stage_s(self, stage: Stage, rows: float, setup: Setup) -> float:
        """The part of that which a stage takes."""
        tasks_s = stage.tasks_s(rows, setup, self.slots)
        return self.pace * _roughly_s(tasks_s, self.slots * setup.executors, self.slow)

    def evened(self, name: str) -> BatchModel:
        """As if the rows of that stage were spread evenly over its tasks, none stood out and no worker were slow."""
        even = (
            replace(stage, shares=np.full(stage.partitions, 1.0 / stage.partitions)) if stage.name == name else stage
            for stage in self.stages
        )
        return replace(self, stages=tuple(even), slow=(), pace=min(self.pace, 1.0))

    def _why(self, blame: str, setup: Setup, most: int) -> str:
        if blame == DRIVER:
            return "planning, logging and committing on the driver"
        stage = next(stage for stage in self.stages if stage.name == blame)
        if stage.imbalance > _EVEN:
            return f"its largest partition has {stage.imbalance:.1f} × the rows of the mean one"
        return f"the longest of its {stage.tasks(setup)} tasks; {most} executors have a slot for every task"

    def _sharing(self) -> str:
        """Why more executors may even take less, where they do not save a wave of tasks."""
        names = [stage.name for stage in self.stages if _shares(stage.cost.slowing)]
        return f"; executors slow each other down at {', '.join(names)}" if names else ""


def _shares(slowing: Slowing | None) -> bool:
    return slowing is not None and max(slowing.starting, slowing.taking) > _SHARED


def _noise(stage: Stage, batches: IntArray, tasks: int, generator: np.random.Generator) -> Array:
    """A line for each batch: that which was recorded; where the stage is cut anew, drawn from all that was seen."""
    if not stage.noise.size:
        return np.zeros((len(batches), tasks))
    if tasks == stage.noise.shape[1]:
        return np.asarray(stage.noise[batches % len(stage.noise)])
    return np.asarray(generator.choice(stage.noise.ravel(), (len(batches), tasks)))


@cache
def _quantiles(count: int) -> Array:
    """Of the normal distribution, spread evenly."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((number + 0.5) / count) for number in range(count)])
