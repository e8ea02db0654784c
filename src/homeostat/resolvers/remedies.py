"""Settings of a query that would save lost time where more executors would not, each with its gain.

If this engine cannot apply a remedy, the remedy says why, and an alert names the setting instead.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import NamedTuple

from homeostat.core.actions import RETUNE, SWITCH_ON
from homeostat.core.configuration import (
    ADMISSION_ROOM,
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    TRIGGER_S,
    Knob,
    Patch,
    Value,
)
from homeostat.core.evidence import LostTime
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS, NEARLY_LATE
from homeostat.core.findings import Diagnosis
from homeostat.core.stats import median
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    DRIVER_BOUND,
    SOURCE_BOUND,
    STATE_STORE_BOUND,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.core.view import View
from homeostat.core.wording import number, span
from homeostat.models.capacity import level
from homeostat.models.objective_check import longest_trigger_s

# The share of the time of the state store that changelog checkpointing is expected to win. More promises too much where
# the store waits for something else than its commit. Measured: a commit of a small state took 69 % less.
CHANGELOG_WINS = 0.5
# The least share of the trigger interval that must be left for rows and for noise, or a longer one is no remedy: it
# would have to be very long. A choice.
_LEAST_LEFT = 0.1
# Decimals of a value that is rounded up: what lies behind them comes from the arithmetic.
_DIGITS = 6
_RESTART_NOTE = "changes that need a restart"
_NO_KNOB = "this engine cannot change it"
_PARTITION_SETTINGS = {
    STATE_PARTITIONS: "spark.sql.shuffle.partitions={}",
    SOURCE_PARTITIONS: "minPartitions={}",
    PARALLELISM: "repartition({})",
}


@dataclass(frozen=True, slots=True)
class Remedy:
    """A change of settings after which a batch of `batch_s` would take `after_s`.

    `setting` is what a person would write. `refusal` says why this engine cannot do it; empty if it can. A remedy that
    `mends` removes the cause. Another one only reduces the effect, so a person must know about the cause anyway.
    """

    kind: str
    patch: Patch
    setting: str
    batch_s: float
    after_s: float
    refusal: str = ""
    mends: bool = True

    @property
    def sentence(self) -> str:
        but = f", but {self.refusal}" if self.refusal else ""
        return f"with {self.setting} {self.effect}{but}"

    @property
    def effect(self) -> str:
        return f"a batch would take {span(self.after_s)} instead of {span(self.batch_s)}"

    @property
    def gain(self) -> float:
        return math.log(self.batch_s / self.after_s) if 0 < self.after_s < self.batch_s else 0.0


class _Switch(NamedTuple):
    """`what` is its name among the notes of the capabilities, `setting` what a person would write."""

    kind: str
    what: str
    setting: str
    after_s: Callable[[LostTime], float]


def _beside_the_batch_s(lost: LostTime) -> float:
    """The next batch runs while the logs of the last one are written, but not more than one batch ahead."""
    return max(lost.without_s, lost.lost_s)


_SWITCHES = {
    STATE_STORE_BOUND: _Switch(
        CHANGELOG_CHECKPOINTING,
        "changelog checkpointing",
        "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled=true",
        lambda lost: lost.batch_s - CHANGELOG_WINS * lost.lost_s,
    ),
    CHECKPOINT_BOUND: _Switch(
        ASYNC_PROGRESS,
        "asynchronous progress tracking",
        "asyncProgressTrackingEnabled=true and asyncProgressTrackingCheckpointIntervalMs=0",
        _beside_the_batch_s,
    ),
}
_CUTS = (TINY_TASKS, TOO_FEW_PARTITIONS)
_FIXED_COSTS = (CHECKPOINT_BOUND, DRIVER_BOUND, SOURCE_BOUND)


def remedies(view: View, diagnosis: Diagnosis) -> tuple[Remedy, ...]:
    """The remedies, the best one first, including those that this engine cannot apply."""
    lost = diagnosis.evidence.find(LostTime)
    if lost is None or not view.micro_batch or not lost.batch_s > 0:
        return ()
    return tuple(_remedies(view, diagnosis, lost))


def _remedies(view: View, diagnosis: Diagnosis, lost: LostTime) -> Iterator[Remedy]:
    query = _query(view, diagnosis)
    if diagnosis.cause in _SWITCHES:
        yield from _switched(view, query, _SWITCHES[diagnosis.cause], lost)
    if diagnosis.cause in _CUTS and diagnosis.component in view.topology:
        yield from _cut_anew(view, diagnosis.component, lost)
    if diagnosis.cause in _FIXED_COSTS:
        yield from _less_often(view, query, lost)


def _query(view: View, diagnosis: Diagnosis) -> str:
    if diagnosis.component in view.topology:
        return view.topology[diagnosis.component].query
    return view.topology.components[-1].query if view.topology.components else ""


def _switched(view: View, query: str, switch: _Switch, lost: LostTime) -> Iterator[Remedy]:
    knob = Knob(switch.kind, query)
    if not view.configuration.get(knob, 0):
        refusal = "" if knob in view.capabilities.knobs else _why_not(view, query, switch.what)
        yield Remedy(SWITCH_ON, Patch({knob: 1}), switch.setting, lost.batch_s, switch.after_s(lost), refusal)


def _cut_anew(view: View, component: str, lost: LostTime) -> Iterator[Remedy]:
    """One task for each slot."""
    latest, knob = view.window.latest, view.topology[component].partitions
    slots = int(latest.workers.slots[latest.workers.alive].sum()) if latest is not None else 0
    if slots < 1:
        return
    query = view.topology[component].query
    if knob is None or knob not in view.capabilities.knobs:
        kind = STATE_PARTITIONS if knob is None else knob.kind
        refusal, target = _why_not(view, query, kind.replace("_", " ")), slots
    else:
        refusal, target = "", int(view.spec(knob).clip(slots))
    if knob is None or target != view.configuration.get(knob, 0):
        setting = _PARTITION_SETTINGS[STATE_PARTITIONS if knob is None else knob.kind].format(target)
        patch = Patch({} if knob is None else {knob: target})
        yield Remedy(RETUNE, patch, setting, lost.batch_s, lost.without_s, refusal)


def _less_often(view: View, query: str, lost: LostTime) -> Iterator[Remedy]:
    """A trigger interval in which the fixed cost of a batch and the rows that arrive meanwhile have room."""
    arrival_per_s = level(view.flow("arrival_per_s"))
    rows = median(view.flow("rows", last=LEAST_OBSERVATIONS))
    if lost.trigger_s is None or lost.lost_s < NEARLY_LATE * lost.trigger_s or not (arrival_per_s > 0 and rows > 0):
        return
    row_share = lost.without_s / rows * arrival_per_s
    if NEARLY_LATE - row_share < _LEAST_LEFT:
        return
    trigger_s = float(_rounded_up(lost.lost_s / (NEARLY_LATE - row_share)))
    batch_s = lost.lost_s + row_share * trigger_s
    knob = Knob(TRIGGER_S, query)
    values: dict[Knob, Value] = {knob: trigger_s}
    refusal = "" if knob in view.capabilities.knobs else _why_not(view, query, "trigger interval")
    refusal = refusal or _too_long(view, knob, trigger_s, batch_s)
    limit = Knob(ROWS_PER_TRIGGER, query)
    needed_rows = _rounded_up(ADMISSION_ROOM * arrival_per_s * trigger_s)
    if view.configuration.get(limit, math.inf) < needed_rows:
        values[limit] = needed_rows
        refusal = refusal or ("" if limit in view.capabilities.knobs else _why_not(view, query, "rows per trigger"))
    setting = f"a trigger of {number(trigger_s)} s"
    yield Remedy(RETUNE, Patch(values), setting, lost.batch_s, batch_s, refusal, mends=False)


def _rounded_up(value: float) -> int:
    return math.ceil(round(value, _DIGITS))


def _too_long(view: View, knob: Knob, trigger_s: float, batch_s: float) -> str:
    """Why the objective or the engine does not allow such a trigger interval; empty if they do."""
    objective, longest_s = view.objective, trigger_s + batch_s
    bounds = [s for s in (objective.latency_p95_s, objective.lag_s) if s is not None]
    if any(longest_s > bound_s for bound_s in bounds):
        return f"rows would wait up to {span(longest_s)}, longer than the objective allows"
    if trigger_s > view.spec(knob).maximum:
        return f"{knob} is at most {number(view.spec(knob).maximum)} s"
    if trigger_s > longest_trigger_s(objective, view.spec(knob)):
        return "it is longer than the trigger that you chose: set longest_trigger or a latency objective"
    return ""


def _why_not(view: View, query: str, what: str) -> str:
    notes = view.capabilities.notes
    return notes.get(f"{query}: {what}") or notes.get(f"{query}: {_RESTART_NOTE}") or _NO_KNOB
