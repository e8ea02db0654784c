"""Spread the rows of hot keys over several instances."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.configuration import SPREAD, Knob, Patch
from homeostat.core.findings import ADJUST_SKEW, DATA_SKEW, HASH_IMBALANCE, Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.models.capacity import RECENT, arrived_rows, speed_up


@dataclass(frozen=True, slots=True)
class AdjustSkewResolver:
    """Sets the spread at which the hottest instance comes within `tolerance` of the mean."""

    tolerance: float = 0.1
    name: str = "adjust-skew"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            knob = Knob(SPREAD, diagnosis.component)
            if diagnosis.cause not in (DATA_SKEW, HASH_IMBALANCE) or knob not in view.capabilities.knobs:
                continue
            rows = arrived_rows(view.window, diagnosis.component, RECENT)
            proposal = self._spread(view, diagnosis, knob, np.nansum(rows, axis=0))
            if proposal is not None:
                yield proposal

    def _spread(self, view: View, diagnosis: Diagnosis, knob: Knob, rows: np.ndarray) -> Proposal | None:
        now = int(view.configuration.get(knob, 1))
        if not rows.size:
            return None
        mean, most = float(rows.mean()), float(rows.max())
        rest = float(np.median(rows))
        excess = (most - rest) * now
        if mean <= 0 or excess <= 0:
            return None
        limit = min(len(rows), int(view.spec(knob).maximum))
        wanted = next(
            (k for k in range(now + 1, limit) if excess / k <= self.tolerance * mean),
            limit,
        )
        if wanted <= now:
            return None
        after = max(mean, rest + excess / wanted)
        text = f"the busiest instance gets {after / mean:.2f} × the mean instead of {most / mean:.2f} ×"
        return Proposal(
            ADJUST_SKEW,
            (diagnosis,),
            Patch({knob: wanted}),
            component=diagnosis.component,
            prediction=Prediction(speed_up(view, {diagnosis.component: most / after}), (diagnosis.component,), text),
            benefit=1.0 - after / most,
            cost=0.05,
        )
