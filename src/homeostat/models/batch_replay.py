"""Replays recorded micro-batches in another configuration: the same tasks, scaled, in Spark's scheduling order.

The duration of a batch is the driver's part (planning, logs, commits) plus, for each stage in turn, the makespan of its
tasks on the available slots. Tasks start in the order of their partitions, each on the first free slot.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, cached_property
from statistics import NormalDist

import numpy as np

from homeostat.core.makespan import each_roughly_s, makespans_s, roughly_s
from homeostat.core.observation import NAN, Array, IntArray
from homeostat.core.stats import median
from homeostat.models.task_cost_model import Slowing, TaskCost, busy

# Draws of the noise for each prediction: more make the quantiles smoother, fewer take less time. A choice.
DRAWS = 24
# Rows are even up to this ratio of the largest partition to the mean; beyond it a hot key is assumed. A lower limit
# would find hot keys in ordinary hashing. A choice; Heron's limit for rates, largest to smallest, is the same number.
EVEN_UP_TO = 1.5
DRIVER = "driver"

# A fixed seed, so that the same question gets the same answer.
_SEED = 20_261_115
# More executors are not worth proposing if they save less than this share of a batch. A choice.
_NO_GAIN = 0.02
# From this exponent of a stage's slowing on, `explain` reports that executors slow each other down. A choice.
_NOTABLE_SLOWING = 0.1
# The noise of very many tasks averages out. If the draws would simulate more tasks than the second number, fewer are
# made, but at least the first number, to answer in time. Choices.
_FEWEST_DRAWS, _MOST_SIMULATED_TASKS = 6, 60_000

# Rows, executors, tasks of each stage, variation of the rows: everything that the duration of a batch depends on.
_Arguments = tuple[float, int, tuple[int, ...], float]


@dataclass(frozen=True, slots=True)
class Setup:
    """The settings on which the duration of a batch depends. A stage that is not in `partitions` keeps its number of
    tasks."""

    executors: int
    trigger_s: float
    rows_bound: float = math.inf
    partitions: Mapping[str, int] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class KeyCurve:
    """How many distinct keys a number of rows contains. There are `keys` in total; NaN if keys were not counted."""

    keys: float = NAN

    def among(self, rows: float | Array) -> Array:
        if not self.keys > 0:
            return np.zeros_like(rows)
        return distinct_keys(self.keys, rows) if math.isfinite(self.keys) else np.asarray(rows)


def distinct_keys(keys: float | Array, rows: float | Array) -> Array:
    """Return the expected number of distinct keys among `rows`, if every key is equally likely."""
    return np.asarray(-keys * np.expm1(-rows / keys))


@dataclass(frozen=True, slots=True)
class Stage:
    """One stage as it was recorded.

    `shares` are the shares of its rows by task, `rows_per_row` its rows per row at the sources and `delay_s` the time a
    slot loses between two tasks. `noise` is ln(measured ÷ predicted) of each task, one line per recorded batch, without
    the part that all tasks of the batch share.
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
        """Return the shares with another number of tasks. A share that stands out belongs to a hot key and does not
        change.
        """
        if partitions == self.partitions:
            return self.shares
        if self.imbalance <= EVEN_UP_TO:
            return np.full(partitions, 1.0 / partitions)
        usual = median(self.shares)
        hot = np.sort(np.where(self.shares > EVEN_UP_TO * usual, self.shares - usual, 0.0))[::-1]
        hot = np.pad(hot[hot > 0][:partitions], (0, max(0, partitions - int((hot > 0).sum()))))
        even = (1.0 - float(hot.sum())) / partitions
        return np.asarray(hot[:partitions] + even)

    def tasks_s(self, rows: float | Array, setup: Setup, slots: int) -> Array:
        """Predict the seconds of each task in a batch of `rows`, on executors with `slots` slots each.

        For several batches (an array of rows) the result has one line per batch.
        """
        own_rows = np.asarray(rows * self.rows_per_row)[..., np.newaxis]
        each = own_rows * self.cut_into(self.tasks(setup))
        keys: float | Array = 0.0
        if self.cost.key_s > 0:
            # Hashing spreads keys evenly, even if their rows are uneven.
            keys = np.minimum(each, self.keys.among(own_rows) / each.shape[-1])
        return self.cost.seconds(each, keys, busy(setup.executors, each.shape[-1], slots)) + self.delay_s

    def tasks(self, setup: Setup) -> int:
        return max(1, setup.partitions.get(self.name, self.partitions))


@dataclass(frozen=True, slots=True)
class CriticalPath:
    """`parts_s` is the time that remains with any number of executors. More executors than `executors` save almost
    nothing.

    `blame` is the name of the largest part and `why` describes it.
    """

    executors: int
    parts_s: Mapping[str, float]
    blame: str
    why: str

    @property
    def seconds(self) -> float:
        return sum(self.parts_s.values())


@dataclass(frozen=True, slots=True)
class _Noise:
    """Draws of the recorded noise, one line per draw: of the rows, of the driver's part, and factors of each stage's
    tasks."""

    rows: Array
    driver_s: Array
    factors: tuple[Array, ...]


@dataclass(frozen=True)
class BatchModel:
    """Everything needed to replay a batch.

    `driver_s` and `common` (ln of the factor that all tasks of a batch share) have one entry per recorded batch. `slow`
    has the factors of the slots that are slower than the others now. `rows_seen` is the range of rows per batch that
    the model was fitted to. `widening` is how many times wider the durations of real batches spread around their median
    than the recorded noise predicts. `pace` is how many times longer their stages took than predicted without noise.
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
    def _draws(self) -> dict[_Arguments, Array]:
        """Earlier answers, because a search returns to the same setups."""
        return {}

    @cached_property
    def _noises(self) -> dict[tuple[int, ...], _Noise]:
        return {}

    @cached_property
    def _plain(self) -> dict[_Arguments, float]:
        return {}

    def _arguments(self, rows: float, setup: Setup, variation: float = 0.0) -> _Arguments:
        return rows, setup.executors, tuple(stage.tasks(setup) for stage in self.stages), variation

    def durations_s(self, rows: float, setup: Setup, variation: float = 0.0) -> Array:
        """Return the sorted seconds of a batch of `rows`, one for each draw of the recorded noise.

        `variation` is the standard deviation of ln(rows) from batch to batch.
        """
        arguments = self._arguments(rows, setup, variation)
        if arguments not in self._draws:
            seconds = self._draw_s(rows, setup, variation)
            seconds.setflags(write=False)
            self._draws[arguments] = seconds
        return self._draws[arguments]

    def _draw_s(self, rows: float, setup: Setup, variation: float) -> Array:
        noise = self._noise(tuple(stage.tasks(setup) for stage in self.stages))
        batch_rows = rows * np.exp(variation * noise.rows) if variation > 0 else rows
        seconds = noise.driver_s
        for stage, factors in zip(self.stages, noise.factors, strict=True):
            expected_s = stage.tasks_s(batch_rows, setup, self.slots)
            seconds = seconds + makespans_s(expected_s * factors, self.slots * setup.executors, self.slow)
        middle = median(seconds)
        return middle * (np.sort(seconds) / middle) ** self.widening

    def _noise(self, tasks: tuple[int, ...]) -> _Noise:
        if tasks not in self._noises:
            draws = min(DRAWS, max(_FEWEST_DRAWS, _MOST_SIMULATED_TASKS // max(1, sum(tasks))))
            generator = np.random.default_rng(_SEED)
            spread = _quantiles(draws)
            cost_errors = [generator.permutation(spread) for _ in self.stages]
            rows = generator.permutation(spread)
            batches = np.arange(draws) % max(1, len(self.common))
            factors = []
            for stage, cost_error, count in zip(self.stages, cost_errors, tasks, strict=True):
                shared_error = self.common[batches] + stage.cost.error * cost_error
                factors.append(np.exp(_task_noise(stage, batches, count, generator) + shared_error[:, np.newaxis]))
            self._noises[tasks] = _Noise(rows, np.resize(self.driver_s, draws), tuple(factors))
        return self._noises[tasks]

    def expected_s(self, rows: float, setup: Setup) -> float:
        """Return the median seconds of a batch of `rows`."""
        return median(self.durations_s(rows, setup))

    def critical_path(self, rows: float, setup: Setup) -> CriticalPath:
        """Return the time of a batch that remains when every task has a slot, and how many executors nearly reach that
        time."""
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
        """The fewest executors that come within `_NO_GAIN` of the shortest duration."""
        best_s = self.plain_s(rows, replace(setup, executors=most))
        low, high = 1, most
        while low < high:
            middle = (low + high) // 2
            good = self.plain_s(rows, replace(setup, executors=middle)) <= (1 + _NO_GAIN) * best_s
            low, high = (low, middle) if good else (middle + 1, high)
        return low

    def plain_s(self, rows: float, setup: Setup) -> float:
        """Return the usual seconds of a batch of `rows`: without noise, at the present pace."""
        arguments = self._arguments(rows, setup)
        if arguments not in self._plain:
            self._plain[arguments] = self.usual_driver_s + sum(
                self.stage_s(stage, rows, setup) for stage in self.stages
            )
        return self._plain[arguments]

    def plain_each_s(self, rows: Sequence[float], setup: Setup) -> list[float]:
        """Return `plain_s` for several sizes of a batch, which is faster than one at a time."""
        slots = self.slots * setup.executors
        total_s = [0.0] * len(rows)
        for stage in self.stages:
            lines = stage.tasks_s(np.array(rows), setup, self.slots)
            stage_s = [self.pace * each_s for each_s in each_roughly_s(lines, slots, self.slow)]
            total_s = [before_s + each_s for before_s, each_s in zip(total_s, stage_s, strict=True)]
        return [self.usual_driver_s + each_s for each_s in total_s]

    def stage_s(self, stage: Stage, rows: float, setup: Setup) -> float:
        """Return the part of `plain_s` that a stage takes."""
        tasks_s = stage.tasks_s(rows, setup, self.slots)
        return self.pace * roughly_s(tasks_s, self.slots * setup.executors, self.slow)

    def with_even_rows(self, name: str) -> BatchModel:
        """Return the model with the rows of one stage spread evenly over its tasks, and without slow workers."""
        even = (
            replace(stage, shares=np.full(stage.partitions, 1.0 / stage.partitions)) if stage.name == name else stage
            for stage in self.stages
        )
        return replace(self, stages=tuple(even), slow=(), pace=min(self.pace, 1.0))

    def _why(self, blame: str, setup: Setup, most: int) -> str:
        if blame == DRIVER:
            return "planning, logging and committing on the driver"
        stage = next(stage for stage in self.stages if stage.name == blame)
        if stage.imbalance > EVEN_UP_TO:
            return f"its largest partition has {stage.imbalance:.1f} × the rows of the mean one"
        return f"the longest of its {stage.tasks(setup)} tasks; {most} executors already have a slot for every task"

    def _sharing(self) -> str:
        """Name the stages at which more executors slow each other down."""
        names = [stage.name for stage in self.stages if _shares(stage.cost.slowing)]
        return f"; executors slow each other down at {', '.join(names)}" if names else ""


def _shares(slowing: Slowing | None) -> bool:
    return slowing is not None and max(slowing.starting, slowing.taking) > _NOTABLE_SLOWING


def _task_noise(stage: Stage, batches: IntArray, tasks: int, generator: np.random.Generator) -> Array:
    """One line per batch: the recorded noise, or a draw from all of it if the number of tasks differs."""
    if not stage.noise.size:
        return np.zeros((len(batches), tasks))
    if tasks == stage.noise.shape[1]:
        return np.asarray(stage.noise[batches % len(stage.noise)])
    return np.asarray(generator.choice(stage.noise.ravel(), (len(batches), tasks)))


@cache
def _quantiles(count: int) -> Array:
    """Evenly spaced quantiles of the normal distribution."""
    normal = NormalDist()
    return np.array([normal.inv_cdf((number + 0.5) / count) for number in range(count)])
