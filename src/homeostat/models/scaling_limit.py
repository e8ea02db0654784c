"""The time that no number of executors can shorten: the critical path of the latest batches, and the cause that takes
most of it."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.causes import UNDER_PROVISIONED, cause_of
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS, NEARLY_LATE, WORTH_NAMING
from homeostat.core.objective import Objective
from homeostat.core.stats import filled, median
from homeostat.core.view import View
from homeostat.core.wording import span
from homeostat.models.loss_series import LossSeries
from homeostat.models.recoverable import UNEVEN_ROWS, BatchLosses, batch_losses
from homeostat.models.time_losses import time_losses

# A cause is named if it takes this share of the time that a batch may take. A choice.
_NOTABLE = 0.25
# A cause that takes this many times its usual time is named from a smaller share on, that of a symptom: batches were in
# time before it rose. A choice, as for the symptom.
_RISEN = 2.0
# This many of the latest batches may lack a measurement. With a smaller number, there is often no result where metrics
# often fail. A choice.
_UNMEASURED = 6
# A task with this many times the rows of the typical task of its stage is assumed to have the rows of one key, which
# more partitions cannot divide. A smaller number would include ordinary unevenness of hashing. A choice.
_CROWDED = 2.5
# 95 % of the rows wait for at most this many batches: up to one until their batch begins, and then their own.
_BATCHES_PER_LATENCY = 1.95


@dataclass(frozen=True, slots=True)
class ScalingLimit:
    """Batches take `batch_s`, and may take `allowed_s`. With any number of executors they would still take `least_s`.

    `culprit` is the cause that takes most of the time, and `culprit_s` the time that it takes; `culprit` is empty if no
    cause takes much. `workers_help` is True if more executors help against it. `without_s` is the time of a batch with
    the rows of one trigger interval and without the causes against which more executors do not help. `with_twice_s` is
    the time of the latest batches with twice as many executors, `at_arrivals_s` their time with the rows of one trigger
    interval. `outside_s` is the time in which no stage of tasks ran. These times are NaN if unknown.
    """

    batch_s: float
    allowed_s: float
    least_s: float
    culprit: str
    culprit_s: float
    batches: tuple[BatchLosses, ...]
    without_s: float = math.nan
    arrival_per_s: float = math.nan
    outside_s: float = math.nan
    workers_help: bool = False
    with_twice_s: float = math.nan
    at_arrivals_s: float = math.nan

    def fits(self, offered_per_s: float, target: float) -> bool:
        """Whether batches at the present pace, without the causes against which more executors do not help, would
        process this load within this share of the trigger interval.

        Only the latest batches count, because earlier ones may have had a fault that is over. False if it is unknown.
        """
        trigger_s = self.batches[-1].parts.trigger_s
        needed_s = self.without_s * max(1.0, offered_per_s / self.arrival_per_s) if self.arrival_per_s > 0 else math.nan
        return trigger_s > 0 and needed_s <= target * trigger_s

    def replayed(self, batches: tuple[BatchLosses, ...], fixed: Collection[str]) -> ScalingLimit:
        """The limit for the latest batches without the causes `fixed`."""
        least_s = _typical([_least_s(each, self.allowed_s, self.arrival_per_s) for each in batches])
        culprit = "" if self.culprit in fixed else self.culprit
        return replace(self, batches=batches, least_s=least_s, culprit=culprit)

    @property
    def late(self) -> bool:
        return self.batch_s > self.allowed_s

    @property
    def nearly_late(self) -> bool:
        return self.batch_s > NEARLY_LATE * self.allowed_s

    @property
    def enough_s(self) -> float:
        """How long a batch may take, so that no more rows arrive meanwhile than it processes."""
        latest = self.batches[-1].parts
        if latest.trigger_s > 0 or not self.arrival_per_s > 0:
            return self.allowed_s
        return min(self.allowed_s, latest.rows / self.arrival_per_s)

    def divided_s(self, even: Collection[str]) -> float:
        """How long batches would take if every task could be divided, except those with far more rows than others,
        because the rows of a key stay together. In the stages `even`, the rows of a key are spread."""
        seconds = [
            _with_stages(each, _crowded_s(each, even), self.allowed_s, self.arrival_per_s) for each in self.batches
        ]
        return median(np.array(seconds))

    @property
    def latest_s(self) -> float:
        return self.batches[-1].parts.seconds

    @property
    def out_of_reach(self) -> bool:
        """Whether batches are late and would be late with any number of executors: because of the culprit, or because
        even the time without any stage is too long."""
        return self.late and ((self.least_s > self.allowed_s and bool(self.culprit)) or self.outside_s > self.allowed_s)

    @property
    def explained(self) -> bool:
        """Whether batches are late only because of causes against which more executors do not help, and which they
        cannot make up for."""
        fits_without = self.without_s <= self.allowed_s and not self.workers_help
        return self.out_of_reach or (self.nearly_late and bool(self.culprit) and fits_without and not self.can_make_up)

    @property
    def can_make_up(self) -> bool:
        """Whether batches are late, even without waiting rows, because of a cause that only a person can fix, and more
        executors would make them end in time until then."""
        is_late = self.late and self.at_arrivals_s > NEARLY_LATE * self.allowed_s
        return is_late and self.with_twice_s <= self.allowed_s and not cause_of(self.culprit).mended_by

    @property
    def why(self) -> str:
        if not self.culprit:
            return f"no task runs during {span(self.outside_s)} of a batch of {span(self.batch_s)}"
        subject = cause_of(self.culprit).culprit or self.culprit
        return f"{subject} takes {span(self.culprit_s)} of {span(self.batch_s)}"


def scaling_limit(view: View) -> ScalingLimit | None:
    """Return the limit; None if the latest batches were not measured, or the engine has no batches."""
    return view.once("scaling limit", _scaling_limit)


def _scaling_limit(view: View) -> ScalingLimit | None:
    latest = view.window.observations[-LEAST_OBSERVATIONS - _UNMEASURED :]
    measured = [each for observation in latest if (each := batch_losses(observation)) is not None]
    count = len(view.window.telling(LEAST_OBSERVATIONS))
    batches = tuple(measured[-count:])
    if not count or len(batches) < count or not view.micro_batch:
        return None
    batch_s = median(np.array([each.parts.seconds for each in batches]))
    triggers_s = [each.parts.trigger_s for each in batches if math.isfinite(each.parts.trigger_s)]
    allowed_s = _allowed_s(view.objective, triggers_s[-1] if triggers_s else math.nan)
    arrivals = view.flow("arrival_per_s", last=count)
    arrival_per_s = median(arrivals[np.isfinite(arrivals)])
    least_s = _typical([_least_s(each, allowed_s, arrival_per_s) for each in batches])
    losses = time_losses(view)
    lost_s, risen = _lost_s(losses, count, of_tasks=1.0)
    in_time_s, _ = _lost_s(losses, count, _share_in_time(batches[-1], allowed_s, arrival_per_s))
    culprit = _culprit(in_time_s, risen, min(batch_s, allowed_s))
    culprit_s = lost_s.get(culprit, 0.0)
    helped = _helped_by_workers(losses, batches[-1])
    removed_s = sum(
        seconds
        for cause, seconds in lost_s.items()
        if cause not in helped and seconds >= WORTH_NAMING * min(batch_s, allowed_s)
    )
    twice = next((s.lost_s for s in losses if s.cause == UNDER_PROVISIONED), None)
    without_s = _typical([_without_s(each, arrival_per_s, removed_s) for each in batches])
    outside_s = _typical([each.parts.outside_s for each in batches])
    with_twice_s = batch_s - median(twice[-count:]) if twice is not None else math.nan
    at_arrivals_s = _typical([_without_s(each, arrival_per_s, 0.0) for each in batches])
    return ScalingLimit(
        batch_s,
        allowed_s,
        least_s,
        culprit,
        culprit_s,
        batches,
        without_s,
        arrival_per_s,
        outside_s,
        culprit in helped,
        with_twice_s,
        at_arrivals_s,
    )


def _typical(values: Sequence[float]) -> float:
    """The median of the known values, because a metric may be missing in one batch."""
    array = np.array(values)
    return median(array[np.isfinite(array)])


def _helped_by_workers(losses: tuple[LossSeries, ...], latest: BatchLosses) -> frozenset[str]:
    """The causes against which more executors help: where tasks wait for a slot."""
    waiting = {stage.name for stage in latest.parts.stages if len(stage.task_s) > stage.slots}
    return frozenset(s.cause for s in losses if cause_of(s.cause).workers_help and s.component in waiting)


def _allowed_s(objective: Objective, trigger_s: float) -> float:
    """How long a batch may take: its trigger interval, or longer if the objective allows it. Unbounded without both."""
    bounds = [trigger_s] if trigger_s > 0 else []
    if objective.latency_p95_s is not None:
        bounds.append(objective.latency_p95_s / _BATCHES_PER_LATENCY)
    if objective.lag_s is not None:
        bounds.append(objective.lag_s)
    return max(bounds, default=math.inf)


def _least_s(batch: BatchLosses, allowed_s: float, arrival_per_s: float) -> float:
    """How long the batch would take with a slot for every task."""
    longest_s = sum(stage.replay_s(stage.task_s, max(1, len(stage.task_s))) for stage in batch.parts.stages)
    return _with_stages(batch, longest_s, allowed_s, arrival_per_s)


def _with_stages(batch: BatchLosses, stages_s: float, allowed_s: float, arrival_per_s: float) -> float:
    """How long the batch would take if its stages took `stages_s`, without the rows that wait only because batches are
    late."""
    parts = batch.parts
    rows_in_time = arrival_per_s * allowed_s / parts.rows
    fewer_rows = min(1.0, rows_in_time if math.isfinite(rows_in_time) else allowed_s / parts.period_s)
    return parts.seconds - sum(stage.seconds for stage in parts.stages) + fewer_rows * stages_s


def _crowded_s(batch: BatchLosses, even: Collection[str]) -> float:
    """The time of the stages if only the tasks with far more rows than others ran, each on its own slot."""
    seconds = 0.0
    for stage in batch.parts.stages:
        rows = filled(stage.rows, 0.0)
        crowded = rows >= _CROWDED * median(rows)
        if stage.name not in even and len(rows) > 1 and median(rows) > 0 and crowded.any():
            seconds += stage.replay_s(stage.task_s[crowded], int(crowded.sum()))
    return seconds


def _without_s(batch: BatchLosses, arrival_per_s: float, lost_s: float) -> float:
    """How long the batch would take without these seconds, with the rows that arrive in one trigger interval."""
    arriving_rows = arrival_per_s * batch.parts.trigger_s
    stages_s = sum(stage.seconds for stage in batch.parts.stages)
    around_s = batch.parts.seconds - stages_s
    shorter_s = max(0.0, stages_s - max(0.0, lost_s - around_s))
    return max(0.0, around_s - lost_s) + shorter_s * arriving_rows / batch.parts.rows


def _lost_s(losses: tuple[LossSeries, ...], last: int, of_tasks: float) -> tuple[dict[str, float], frozenset[str]]:
    """The cost of each cause at the component where it costs most, and the causes that cost far more than usual
    there. Of a cost in tasks, only the share `of_tasks` counts."""
    lost_s: dict[str, float] = {}
    risen: dict[str, bool] = {}
    for each in losses:
        seconds = median((of_tasks if each.component else 1.0) * each.lost_s[-last:])
        if each.cause not in (UNDER_PROVISIONED, UNEVEN_ROWS) and seconds > lost_s.get(each.cause, 0.0):
            lost_s[each.cause] = seconds
            risen[each.cause] = seconds >= _RISEN * each.usual_s
    return lost_s, frozenset(cause for cause, has_risen in risen.items() if has_risen)


def _share_in_time(latest: BatchLosses, allowed_s: float, arrival_per_s: float) -> float:
    """The share of the time in tasks that a batch would need if batches were in time. A late batch has the rows of
    several trigger intervals, which only make its tasks longer."""
    rows_in_time = arrival_per_s * allowed_s / latest.parts.rows
    return min(1.0, rows_in_time) if math.isfinite(rows_in_time) else 1.0


def _culprit(lost_s: Mapping[str, float], risen: Collection[str], of_s: float) -> str:
    worst = max(lost_s, key=lambda cause: lost_s[cause], default="")
    least_s = (WORTH_NAMING if worst in risen else _NOTABLE) * of_s
    return worst if worst and lost_s[worst] >= least_s else ""
