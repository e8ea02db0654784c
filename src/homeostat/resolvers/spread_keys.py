"""Spreads the rows of hot keys over several instances, and undoes this when no key is hot any more."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.actions import ADJUST_SKEW, GATHER
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import DATA_SKEW, HASH_IMBALANCE, NEEDLESS_SPREAD, SOURCE_SKEW
from homeostat.core.configuration import Knob, Patch
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.models.batch_model import RECENT, batch_time, waves_of
from homeostat.models.capacity import arrived_rows, speed_up
from homeostat.resolvers.proposal_weights import DISTURBANCE, LEAST_SHORTER, PAUSE_WEIGHT

_SKEWS = (DATA_SKEW, HASH_IMBALANCE, SOURCE_SKEW)


@dataclass(frozen=True, slots=True)
class AdjustSkewResolver:
    """Sets the spread at which the busiest instance is within `tolerance` of the mean. With micro-batches this is one
    instance per slot, because rows are then dealt out in turn, whatever their keys.

    With micro-batches, it leaves hash imbalance to `rebalance`: no key is hot then.
    `tolerance`: a smaller value spreads a key over more instances, whose parts must be merged afterwards (choice).
    """

    tolerance: float = 0.1
    name: str = "adjust-skew"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in (d for d in diagnoses if d.cause in _SKEWS and d.component in view.topology):
            if view.micro_batch and diagnosis.cause == HASH_IMBALANCE:
                continue
            component = view.topology[diagnosis.component]
            knob = component.spread
            if knob is not None and knob in view.capabilities.knobs:
                proposal = (self._dealt if view.micro_batch else self._salting)(view, diagnosis, knob)
                if proposal is not None:
                    yield proposal
            elif diagnosis.cause != HASH_IMBALANCE:
                yield alert_about(diagnosis, component.unspread)

    def _dealt(self, view: View, diagnosis: Diagnosis, knob: Knob) -> Proposal | None:
        batch = batch_time(view, len(view.window.telling(LEAST_OBSERVATIONS)))
        if batch is None or diagnosis.component not in batch.stages:
            return None
        target = int(min(max(2.0, batch.slots), view.spec(knob).maximum))
        if target <= view.configuration.get(knob, 1):
            return None
        stage = batch.stages[diagnosis.component]
        if diagnosis.cause == SOURCE_SKEW:
            even_s = stage.partitions * stage.mean_s / target
        else:
            even_s = waves_of(stage.partitions, batch.slots) * stage.mean_s
        now_s, after_s = batch.seconds, batch.seconds - stage.span_s + even_s
        if after_s > (1.0 - LEAST_SHORTER) * now_s:
            return None
        text = f"the stage takes {even_s:.1f} instead of {stage.span_s:.1f} s, the batch {after_s:.1f} of {now_s:.1f}"
        prediction = Prediction(math.log(now_s / after_s), (diagnosis.component,), text)
        pause = view.spec(knob).apply_s * PAUSE_WEIGHT
        return _proposal(diagnosis, Patch({knob: target}), prediction, 1.0 - after_s / now_s, pause)

    def _salting(self, view: View, diagnosis: Diagnosis, knob: Knob) -> Proposal | None:
        rows = np.nansum(arrived_rows(view.window, diagnosis.component, RECENT), axis=0)
        now = int(view.configuration.get(knob, 1))
        if not rows.size:
            return None
        mean, most = float(rows.mean()), float(rows.max())
        rest = float(np.median(rows))
        excess = (most - rest) * now
        if mean <= 0 or excess <= 0:
            return None
        limit = min(len(rows), int(view.spec(knob).maximum))
        target = next(
            (k for k in range(now + 1, limit) if excess / k <= self.tolerance * mean),
            limit,
        )
        if target <= now:
            return None
        after = max(mean, rest + excess / target)
        text = f"the busiest instance gets {after / mean:.2f} × the mean instead of {most / mean:.2f} ×"
        gain = speed_up(view, {diagnosis.component: most / after})
        prediction = Prediction(gain, (diagnosis.component,), text)
        return _proposal(diagnosis, Patch({knob: target}), prediction, 1.0 - after / most, DISTURBANCE)


@dataclass(frozen=True, slots=True)
class GatherResolver:
    """Stops spreading the rows of a key if no key is hot: spreading then only costs the step that merges them."""

    name: str = "gather"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in (d for d in diagnoses if d.cause == NEEDLESS_SPREAD):
            knob = view.topology[diagnosis.component].spread
            if knob is not None and knob in view.capabilities.knobs:
                text = "no key is hot, so the rows stay even without spreading"
                yield Proposal(
                    GATHER,
                    (diagnosis,),
                    Patch({knob: 1}),
                    component=diagnosis.component,
                    prediction=Prediction(0.0, (diagnosis.component,), text),
                    benefit=DISTURBANCE,
                )


def _proposal(diagnosis: Diagnosis, patch: Patch, prediction: Prediction, benefit: float, cost: float) -> Proposal:
    return Proposal(
        ADJUST_SKEW,
        (diagnosis,),
        patch,
        component=diagnosis.component,
        prediction=prediction,
        benefit=benefit,
        cost=cost,
    )
