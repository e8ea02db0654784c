"""Let a batch take more rows, where the bound on them is what holds the application back."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.actions import ADMIT_MORE
from homeostat.core.alerting import alert_about
from homeostat.core.causes import ADMISSION_LIMITED
from homeostat.core.configuration import ADMISSION_ROOM, ROWS_PER_TRIGGER, Knob, Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.models.capacity import backlog_rows, level

_CATCH_UP_BATCHES = 30.0


def rows_wanted(view: View, rate_per_s: float) -> int:
    """Twice what arrives in one trigger at this rate: room to catch up, and still no giant batch. 0 if unknown."""
    rows = ADMISSION_ROOM * rate_per_s * _trigger_s(view)
    return math.ceil(rows) if math.isfinite(rows) else 0


@dataclass(frozen=True, slots=True)
class AdmitMoreResolver:
    """Raises the bound to twice the load, or to what works off the backlog in some thirty batches.

    A bound that the engine cannot set is told to a person.
    """

    name: str = "admit-more"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in (d for d in diagnoses if d.cause == ADMISSION_LIMITED):
            for knob, bound in view.configuration.values.items():
                if knob.kind == ROWS_PER_TRIGGER and knob in view.capabilities.knobs:
                    yield from self._raise(view, diagnosis, knob, bound)
                elif knob.kind == ROWS_PER_TRIGGER:
                    yield alert_about(diagnosis, "the application sets it itself")

    @staticmethod
    def _raise(view: View, diagnosis: Diagnosis, knob: Knob, bound: float) -> Iterator[Proposal]:
        arrival = level(view.flow("arrival_per_s"))
        waiting = backlog_rows(view)
        wanted = rows_wanted(view, max(arrival, view.objective.throughput_per_s or 0.0))
        wanted = max(wanted, math.ceil(bound + (waiting if math.isfinite(waiting) else 0.0) / _CATCH_UP_BATCHES))
        if wanted > bound:
            yield Proposal(
                ADMIT_MORE,
                (diagnosis,),
                Patch({knob: wanted}),
                component=diagnosis.component,
                prediction=_predicted(view, knob, bound, wanted),
                benefit=max((symptom.severity for symptom in diagnosis.symptoms), default=0.5),
                cost=view.spec(knob).apply_s / 3000.0,
            )


def _predicted(view: View, knob: Knob, bound: float, wanted: int) -> Prediction:
    """The same rows take the same time: more of them are let in, and that must not make each of them dearer."""
    touched = tuple(component.name for component in view.topology if component.query == knob.scope)
    more = f"batches of up to {wanted:,} rows instead of {bound:,.0f}"
    return Prediction(0.0, touched, f"{more}, {wanted / _trigger_s(view):,.0f} rows/s if they end in time")


def _trigger_s(view: View) -> float:
    """NaN before the first batch."""
    return max(view.current[-1].trigger_s if view.current else math.nan, 1.0)
