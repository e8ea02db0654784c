"""Raises the limit on rows per trigger if it slows the application down."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.actions import ADMIT_MORE
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import ADMISSION_LIMITED
from homeostat.core.configuration import ADMISSION_ROOM, ROWS_PER_TRIGGER, Knob, Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.models.capacity import backlog_rows, level
from homeostat.resolvers.proposal_weights import PAUSE_WORTH_S, USUAL_SEVERITY
from homeostat.resolvers.sizing import SHORTEST_TRIGGER_S

# Over how many batches a backlog is processed. Fewer make larger batches, which take longer; more take longer in total.
# Choice.
_CATCH_UP_BATCHES = 30.0


def rows_for(view: View, rate_per_s: float) -> int:
    """Twice what arrives in one trigger at this rate: enough to catch up, without huge batches. 0 if unknown."""
    rows = ADMISSION_ROOM * rate_per_s * _trigger_s(view)
    return math.ceil(rows) if math.isfinite(rows) else 0


@dataclass(frozen=True, slots=True)
class AdmitMoreResolver:
    """Raises the limit to twice the load, or to what processes the backlog in about thirty batches.

    If the engine cannot set the limit, it alerts a person.
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
        rows = rows_for(view, max(arrival, view.objective.throughput_per_s or 0.0))
        rows = max(rows, math.ceil(bound + (waiting if math.isfinite(waiting) else 0.0) / _CATCH_UP_BATCHES))
        if rows > bound:
            yield Proposal(
                ADMIT_MORE,
                (diagnosis,),
                Patch({knob: rows}),
                component=diagnosis.component,
                prediction=_prediction(view, knob, bound, rows),
                benefit=max((symptom.severity for symptom in diagnosis.symptoms), default=USUAL_SEVERITY),
                cost=view.spec(knob).apply_s / PAUSE_WORTH_S,
            )


def _prediction(view: View, knob: Knob, bound: float, rows: int) -> Prediction:
    """No gain at equal load: larger batches must not make a row more expensive."""
    components = tuple(component.name for component in view.topology if component.query == knob.scope)
    more = f"batches of up to {rows:,} rows instead of {bound:,.0f}"
    return Prediction(0.0, components, f"{more}, {rows / _trigger_s(view):,.0f} rows/s if they end in time")


def _trigger_s(view: View) -> float:
    """NaN before the first batch."""
    return max(view.current[-1].trigger_s if view.current else math.nan, SHORTEST_TRIGGER_S)
