"""How long a recorded batch would have taken without a cause: the same batch, replayed with that cause removed.

Each cause is removed alone, and also after all others were removed. Two causes may hide each other, such as a slow
worker and a hot partition that both last until the end of the stage. Removing one alone then gains nothing, so the
larger of the two gains counts.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from homeostat.core.causes import UNDER_PROVISIONED
from homeostat.core.observation import Array, Observation
from homeostat.core.stats import filled, median
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    DRIVER_BOUND,
    FAILING_TASKS,
    GC_BOUND,
    SHUFFLE_BOUND,
    SINK_BOUND,
    SMALL_FILES,
    SOURCE_BOUND,
    SPILLING,
    STATE_STORE_BOUND,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.models.batch_parts import (
    CHECKPOINT_PHASES,
    PLANNING_PHASES,
    SOURCE_PHASES,
    BatchParts,
    StagePart,
    batch_parts,
    or_typical,
)

# Unevenly divided rows. Other measurements show the cause: a hot key, the hash, or the source.
UNEVEN_ROWS = "uneven-rows"
# Bytes per second that a task spills and reads back, including serialisation. A lower rate would attribute more of a
# task's time to spilling. A choice: disks and serialisers differ.
SPILL_BYTES_PER_S = 60e6
# At most this share of a task's time counts as spilling, because the work itself takes some time. A choice.
MOST_SPILLING = 0.9
# A task that takes less than this spends most of its time on starting and ending. Spark's tuning guide calls tasks of
# 200 ms short; below half of that the start costs as much as the work. A choice.
STARTING_S = 0.1
# The fewest tasks of a stage to which a line (time by rows) is fitted, and the largest error of the time without rows,
# as a share of the longest start. With fewer tasks or a larger error the line is not used. Choices.
_LEAST_TASKS_OF_LINE, _SURE_OF_START = 8, 0.5

# Files with fewer bytes take longer to open than to read: the default of spark.sql.files.openCostInBytes, in bytes.
OPEN_COST_BYTES = 4 * 2**20
# More small files in a batch than this are too many for a source of files. A choice.
MANY_FILES = 20

Change = Callable[[StagePart], Array]


@dataclass(frozen=True, slots=True)
class Loss:
    """`seconds` of a batch that would not have been needed without the cause. `component` is empty if the loss concerns
    the whole batch.

    `guessed` is True if the measurement that separates this cause from another was missing. `least_s` is the gain of
    removing the cause alone or after all others, whichever is less: a cause that makes a task long also makes its other
    parts long.
    """

    cause: str
    seconds: float
    component: str = ""
    guessed: bool = False
    least_s: float = math.nan

    @property
    def beside_s(self) -> float:
        """The loss beside larger ones, of which it may be a part."""
        return self.least_s if math.isfinite(self.least_s) else self.seconds


@dataclass(frozen=True, slots=True)
class BatchLosses:
    """The time that one batch lost to each cause, by cause and component."""

    parts: BatchParts
    losses: Mapping[tuple[str, str], Loss]

    def seconds(self, cause: str, component: str = "") -> float:
        loss = self.losses.get((cause, component))
        return loss.seconds if loss is not None else 0.0


def batch_losses(observation: Observation) -> BatchLosses | None:
    """Return the losses of a batch; None if its parts are unknown. The result is cached, because the loop examines the
    same batches in every cycle."""
    return observation.once("batch losses", partial(_batch_losses, observation))


def _batch_losses(observation: Observation) -> BatchLosses | None:
    parts = batch_parts(observation)
    if parts is None:
        return None
    losses = [
        *_around_the_stages(parts, reads_small_files(observation)),
        *_inside_the_stages(parts, _store_s(observation)),
        *_by_layout(parts),
    ]
    return BatchLosses(parts, {(loss.cause, loss.component): loss for loss in losses if loss.seconds > 0})


def _around_the_stages(parts: BatchParts, small_files: bool) -> list[Loss]:
    tail_known = math.isfinite(parts.tail_s)
    tail_s, lead_s = (parts.tail_s, parts.lead_s) if tail_known else (parts.around_s, 0.0)
    scheduling_s = sum(_gain_s(stage, stage.task_s - stage.cost("delay_s")) for stage in parts.stages)
    driver_s = parts.phases(PLANNING_PHASES) + lead_s + scheduling_s
    return [
        Loss(SINK_BOUND, tail_s, guessed=not tail_known),
        Loss(DRIVER_BOUND, driver_s),  # without the lead, if that is not known
        Loss(SMALL_FILES if small_files else SOURCE_BOUND, parts.phases(SOURCE_PHASES)),
        Loss(CHECKPOINT_BOUND, parts.phases(CHECKPOINT_PHASES)),
    ]


def _inside_the_stages(parts: BatchParts, store_s: Mapping[str, float]) -> list[Loss]:
    """Losses inside the tasks: causes that make tasks longer than the work on their rows does."""
    changes: dict[str, Change] = {
        GC_BOUND: partial(_without, costs=("gc_s",)),
        SHUFFLE_BOUND: partial(_without, costs=("fetch_wait_s", "shuffle_write_s")),
        SPILLING: _without_spilling,
        FAILING_TASKS: partial(_without, costs=("failed_s",)),
        UNEVEN_ROWS: with_even_rows,
        STATE_STORE_BOUND: lambda stage: stage.task_s - store_s[stage.name] if stage.name in store_s else stage.task_s,
    }
    return [
        Loss(cause, gain.most_s, stage.name, least_s=gain.least_s)
        for stage in parts.stages
        for cause, gain in gains(stage, changes).items()
        if gain.most_s > 0
    ]


class Gain(NamedTuple):
    """The gain of a change at a stage, alone and after all others: the larger and the smaller of the two."""

    most_s: float
    least_s: float


def gains(stage: StagePart, changes: Mapping[str, Change]) -> dict[str, Gain]:
    tasks_s = {name: change(stage) for name, change in changes.items()}
    factors = {name: _factor(stage, task_s) for name, task_s in tasks_s.items() if task_s is not stage.task_s}
    acting = {name: factor for name, factor in factors.items() if bool((factor != 1.0).any())}
    if not acting:
        return {}
    alone_s = {name: stage.seconds - stage.replay_s(stage.task_s * factor) for name, factor in acting.items()}
    if len(acting) == 1:
        return {name: Gain(max(0.0, gained_s), max(0.0, gained_s)) for name, gained_s in alone_s.items()}
    product = np.prod(list(acting.values()), axis=0)
    all_s = stage.replay_s(stage.task_s * product)
    gained = {}
    for name, factor in acting.items():
        others = product / np.where(factor > 0, factor, 1.0)
        last_s = stage.replay_s(stage.task_s * others) - all_s
        gained[name] = Gain(max(0.0, alone_s[name], last_s), max(0.0, min(alone_s[name], last_s)))
    return gained


def _factor(stage: StagePart, task_s: Array) -> Array:
    """The time of each task after the change ÷ its time before. No time is negative."""
    if stage.all_took_time:
        factor = task_s / stage.task_s
    else:
        factor = np.divide(task_s, stage.task_s, out=np.ones(len(task_s)), where=stage.task_s > 0)
    return np.asarray(np.maximum(filled(factor, 1.0), 0.0))


def reads_small_files(observation: Observation) -> bool:
    files = observation.files
    return files.read >= MANY_FILES and files.read_bytes < OPEN_COST_BYTES * files.read


def _gain_s(stage: StagePart, task_s: Array) -> float:
    return max(0.0, stage.seconds - stage.replay_s(np.maximum(task_s, 0.0)))


def _without(stage: StagePart, costs: tuple[str, ...]) -> Array:
    task_s = stage.task_s
    for name in costs:
        seconds = stage.cost(name)
        if seconds.any():
            task_s = task_s - seconds
    return task_s


def _without_spilling(stage: StagePart) -> Array:
    """The tasks without the time that the spilled bytes take or, if it is longer, the time in which such a task only
    waited."""
    if stage.costs is None:
        return stage.task_s
    spilled_bytes = stage.cost("spilled_disk_bytes")
    if not spilled_bytes.any():
        return stage.task_s
    known_costs = ("gc_s", "fetch_wait_s", "shuffle_write_s", "deserialise_s", "serialise_s", "delay_s", "failed_s")
    waited_s = (
        stage.task_s - filled(or_typical(stage.costs.cpu_s), np.inf) - sum(stage.cost(name) for name in known_costs)
    )
    spilling_s = np.where(spilled_bytes > 0, np.maximum(spilled_bytes / SPILL_BYTES_PER_S, waited_s), 0.0)
    return np.asarray(stage.task_s - np.minimum(spilling_s, MOST_SPILLING * stage.task_s))


def with_even_rows(stage: StagePart) -> Array:
    """Each task with the mean number of rows, at its own time per row."""
    rows = filled(stage.rows, 0.0)
    with_rows = rows > 0
    if len(rows) < 2 or not with_rows.any():
        return stage.task_s
    start_s = min(starting_s(stage), float(stage.task_s.min()))
    times = np.divide(rows.mean(), rows, out=np.ones(len(rows)), where=with_rows)
    even_s: Array = start_s + (stage.task_s - start_s) * times
    # Tasks without rows get some, and then take the typical time of the others.
    return even_s if with_rows.all() else np.where(with_rows, even_s, median(even_s[with_rows]))


def starting_s(stage: StagePart) -> float:
    """The longest time that the start of a task can take."""
    return min(STARTING_S, stage.short_task_s) if len(stage.task_s) else 0.0


def _store_s(observation: Observation) -> dict[str, float]:
    """The mean time that a task of each stateful component spent on committing its state and waiting for the store."""
    commit_s = sum(_or_zero(state.commit_s) + _or_zero(state.stall_s) for state in observation.states.values())
    partitions = max((_or_zero(state.partitions) for state in observation.states.values()), default=0.0)
    if not (commit_s > 0 and partitions > 0):
        return {}
    stateful = [name for name, sample in observation.tasks.items() if sample.instances == int(partitions)]
    return {stateful[-1]: commit_s / partitions} if stateful else {}


def _or_zero(value: float) -> float:
    return value if math.isfinite(value) else 0.0


def _by_layout(parts: BatchParts) -> list[Loss]:
    """The gain of another number of tasks or slots."""
    losses = []
    more_slots_s = 0.0
    for stage in parts.stages:
        tasks, work_s, start_s = len(stage.task_s), float(stage.task_s.sum()), starting_s(stage)
        pace = stage.seconds / recorded_s if (recorded_s := stage.replay_s(stage.task_s)) > 0 else 1.0
        divided_s = pace * (start_s + max(0.0, work_s - tasks * start_s) / stage.slots)
        if tasks > stage.slots:
            losses.append(Loss(TINY_TASKS, _tiny_s(stage, start_s), stage.name))
            more_slots_s += stage.seconds - stage.replay_s(stage.task_s, 2 * stage.slots)
        elif tasks < stage.slots:
            losses.append(Loss(TOO_FEW_PARTITIONS, max(0.0, pace * work_s / tasks - divided_s), stage.name))
    losses.append(Loss(UNDER_PROVISIONED, more_slots_s))
    return losses


def _tiny_s(stage: StagePart, start_s: float) -> float:
    """The time that one task per slot would save: the starts of all other tasks, which take turns on the slots."""
    tasks, start_s = len(stage.task_s), _measured_start_s(stage, start_s)
    work_s = float(np.maximum(stage.task_s - start_s, 0.0).sum())
    fewer_s = start_s + work_s / stage.slots
    now_s = start_s * math.ceil(tasks / stage.slots) + work_s / stage.slots
    return stage.seconds * max(0.0, now_s - fewer_s) / now_s if now_s > 0 else 0.0


def _measured_start_s(stage: StagePart, most_s: float) -> float:
    """The time of a task without rows, by a line fitted to the tasks of the stage; `most_s` if that is uncertain."""
    is_known = np.isfinite(stage.rows)
    rows, task_s = stage.rows[is_known], stage.task_s[is_known]
    scatter = float(((rows - rows.mean()) ** 2).sum()) if len(rows) >= _LEAST_TASKS_OF_LINE else 0.0
    if scatter <= 0:
        return most_s
    slope = float(((rows - rows.mean()) * task_s).sum()) / scatter
    start_s = float(task_s.mean() - slope * rows.mean())
    residuals = task_s - start_s - slope * rows
    error_s = math.sqrt(float((residuals**2).sum()) / (len(rows) - 2) * (1 / len(rows) + rows.mean() ** 2 / scatter))
    return min(max(start_s, 0.0), most_s) if error_s <= _SURE_OF_START * most_s else most_s
