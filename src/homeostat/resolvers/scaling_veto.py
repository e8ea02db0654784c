"""Refuses to change the number of executors where that cannot help, and says why: the critical path of the batch."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from homeostat.core.configuration import EXECUTORS, PARALLELISM, SOURCE_PARTITIONS, SPREAD, STATE_PARTITIONS, Value
from homeostat.core.findings import Proposal
from homeostat.core.guards import GuardContext, with_values
from homeostat.core.stats import median
from homeostat.core.wording import span
from homeostat.models.recoverable import BatchLosses
from homeostat.models.scaling_limit import ScalingLimit, scaling_limit

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
        reason = self._reason(limit, now, value, cuts_anew=cuts_anew) or _too_long(limit, now, value, cuts_anew, even)
        if not reason:
            return proposal
        return with_values(proposal, rest, context) if rest or proposal.patch.retire else reason

    def _reason(self, limit: ScalingLimit, now: Value, value: Value, *, cuts_anew: bool) -> str:
        if value < now and limit.late and limit.culprit:
            return limit.why
        if value < now and limit.latest_s > limit.allowed_s:
            return f"the latest batch took {span(limit.latest_s)}, and the limit is {span(limit.allowed_s)}"
        if now <= 0 or value <= now:
            return ""
        gain_s = median(np.array([_gain_s(each, value / now, cuts_anew) for each in limit.batches]))
        if limit.out_of_reach or (limit.culprit and gain_s < self.least_gain * limit.batch_s):
            return f"{limit.why}, and more executors would still leave it at {span(max(0.0, limit.least_s))}"
        if gain_s < self.least_gain * limit.batch_s:
            still_s = span(max(0.0, limit.batch_s - gain_s))
            return f"with {value:g} executors a batch would still take {still_s} of {span(limit.batch_s)}"
        if cuts_anew and math.isfinite(limit.enough_s):
            divided_s = median(np.array([_divided_s(each, 1.0) for each in limit.batches]))
            wins = limit.batch_s - divided_s >= self.least_gain * limit.batch_s
            if wins and divided_s <= self.headroom * limit.enough_s:
                return (
                    f"with more partitions alone a batch would take {span(divided_s)} instead of {span(limit.batch_s)}"
                )
        return ""


def _too_long(limit: ScalingLimit, now: Value, value: Value, cuts_anew: bool, even: frozenset[str]) -> str:
    """Why no number of executors is enough, whatever the cause; empty if one may be."""
    if value <= now or not limit.late:
        return ""
    least_s = limit.divided_s(even) if cuts_anew else limit.least_s
    if least_s <= limit.allowed_s or (even and not cuts_anew):
        return ""
    return f"the longest tasks take {span(least_s)}, and a batch may take {span(limit.allowed_s)}"


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
