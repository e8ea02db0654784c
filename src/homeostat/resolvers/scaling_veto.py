"""Refuses to change the number of executors where that cannot help, and says why: the critical path of the batch."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.causes import DATA_SKEW, HASH_IMBALANCE, SLOW_INSTANCE, SOURCE_SKEW
from homeostat.core.configuration import EXECUTORS, PARALLELISM, SOURCE_PARTITIONS, SPREAD, STATE_PARTITIONS, Value
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Proposal
from homeostat.core.guards import GuardContext, with_values
from homeostat.core.observation import Observation
from homeostat.core.stats import median
from homeostat.core.wording import span
from homeostat.core.worker_pace import NOTICED, executors_of
from homeostat.models.recoverable import BatchLosses, batch_losses, with_even_rows
from homeostat.models.scaling_limit import ScalingLimit, scaling_limit

_UNEVEN = frozenset({DATA_SKEW, HASH_IMBALANCE, SOURCE_SKEW})
_PARTITIONS = frozenset({PARALLELISM, SOURCE_PARTITIONS, STATE_PARTITIONS})


@dataclass(frozen=True, slots=True)
class ScalingVeto:
    """Lets the number of executors grow only if the latest batches, replayed with more slots, would be shorter, and if
    some number of executors would be enough.

    It does not let the number shrink while another cause makes batches late, because idle executors may be needed when
    that is fixed. Other changes of the same proposal remain.
    """

    # The share of a batch that more executors must save. A smaller one pays for a gain that nobody notices. A choice.
    least_gain: float = 0.05
    # If only partitions change, the batch must fill this share of the time that it may take. A larger one leaves out
    # executors that noise then makes necessary. A choice.
    headroom: float = 0.8
    name: str = "scaling cannot help"

    def check(self, proposal: Proposal, context: GuardContext) -> Proposal | str:
        limit = scaling_limit(context.view)
        knob = next((knob for knob in proposal.patch.values if knob.kind == EXECUTORS), None)
        if limit is None or knob is None:
            return proposal
        rest = {other: value for other, value in proposal.patch.values.items() if other != knob}
        now, value = context.view.configuration.get(knob, 0), proposal.patch.values[knob]
        cuts_anew = any(knob.kind in _PARTITIONS for knob in rest)
        even = frozenset(knob.scope for knob in rest if knob.kind == SPREAD)
        if value < now:
            reason = _too_early(limit)
        else:
            limit = _without_faults(limit, context)
            reason = self._no_gain(limit, now, value, cuts_anew) or _too_long(limit, now, value, cuts_anew, even)
        if not reason:
            return proposal
        return with_values(proposal, rest, context) if rest or proposal.patch.retire else reason

    def _no_gain(self, limit: ScalingLimit, now: Value, value: Value, cuts_anew: bool) -> str:
        if now <= 0 or value <= now:
            return ""
        gain_s = median(np.array([_gain_s(each, value / now, cuts_anew) for each in limit.batches]))
        batch_s = median(np.array([each.parts.seconds for each in limit.batches]))
        if limit.out_of_reach or (limit.culprit and gain_s < self.least_gain * batch_s):
            return f"{limit.why}, and more executors would still leave it at {span(max(0.0, limit.least_s))}"
        if gain_s < self.least_gain * batch_s:
            still_s = span(max(0.0, batch_s - gain_s))
            return f"with {value:g} executors a batch would still take {still_s} of {span(batch_s)}"
        if cuts_anew and math.isfinite(limit.enough_s):
            divided_s = median(np.array([_divided_s(each, 1.0) for each in limit.batches]))
            wins = batch_s - divided_s >= self.least_gain * batch_s
            if wins and divided_s <= self.headroom * limit.enough_s:
                return f"with more partitions alone a batch would take {span(divided_s)} instead of {span(batch_s)}"
        return ""


def _too_early(limit: ScalingLimit) -> str:
    """Why executors cannot be removed now; empty if they can be."""
    if limit.late and limit.culprit:
        return limit.why
    if limit.latest_s > limit.allowed_s:
        return f"the latest batch took {span(limit.latest_s)}, and the limit is {span(limit.allowed_s)}"
    return ""


def _too_long(limit: ScalingLimit, now: Value, value: Value, cuts_anew: bool, even: frozenset[str]) -> str:
    """Why no number of executors is enough, whatever the cause; empty if one may be."""
    if value <= now or not limit.late:
        return ""
    least_s = limit.divided_s(even) if cuts_anew else limit.least_s
    if least_s <= limit.allowed_s or (even and not cuts_anew):
        return ""
    return f"the longest tasks take {span(least_s)}, and a batch may take {span(limit.allowed_s)}"


def _without_faults(limit: ScalingLimit, context: GuardContext) -> ScalingLimit:
    """The latest batches without the faults that other remedies fix: slow workers have the pace of their peers, and
    uneven rows are even. A slow worker hides what more executors would save, and the other way round."""
    standing = context.standing_since_s
    uneven = frozenset(name for cause, name in standing if cause in _UNEVEN)
    slow = any(cause == SLOW_INSTANCE for cause, _ in standing)
    if not (uneven or slow):
        return limit
    observed = context.view.window.telling(LEAST_OBSERVATIONS).observations
    batches = tuple(_fixed(o, losses, slow, uneven) for o in observed if (losses := batch_losses(o)) is not None)
    return limit.replayed(batches or limit.batches, [SLOW_INSTANCE] if slow else [])


def _fixed(observation: Observation, batch: BatchLosses, slow: bool, uneven: frozenset[str]) -> BatchLosses:
    pace = np.nan_to_num(executors_of(observation, tuple(observation.tasks)).ratio, nan=1.0)
    pace = np.append(np.where(pace >= NOTICED, pace, 1.0) if slow else np.ones(len(pace)), 1.0)
    stages = []
    for stage in batch.parts.stages:
        task_s = stage.task_s / pace[stage.worker]
        even = replace(stage, task_s=task_s)
        even = replace(even, task_s=with_even_rows(even)) if stage.name in uneven else even
        stages.append(replace(even, seconds=stage.replay_s(even.task_s)))
    seconds = batch.parts.seconds - sum(s.seconds for s in batch.parts.stages) + sum(s.seconds for s in stages)
    return replace(batch, parts=replace(batch.parts, stages=tuple(stages), seconds=seconds))


def _gain_s(batch: BatchLosses, factor: float, cuts_anew: bool) -> float:
    """What a batch gains with `factor` times the slots. If stages are also cut anew, this alone does not count."""
    if cuts_anew:
        return _divided_s(batch, 1.0) - _divided_s(batch, factor)
    return sum(
        stage.seconds - stage.replay_s(stage.task_s, max(1, round(stage.slots * factor)))
        for stage in batch.parts.stages
    )


def _divided_s(batch: BatchLosses, factor: float) -> float:
    """The batch with `factor` times the slots, if the work of each stage is divided evenly over them."""
    seconds = batch.parts.seconds
    for stage in batch.parts.stages:
        if stage.recorded_s > 0:
            even_s = stage.seconds * float(stage.task_s.sum()) / (stage.slots * factor) / stage.recorded_s
            seconds -= stage.seconds - min(stage.seconds, even_s)
    return seconds
