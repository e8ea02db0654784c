"""Changes the settings of a query that save lost time where more executors would not."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.configuration import TRIGGER_S
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.models.scaling_limit import scaling_limit
from homeostat.resolvers.proposal_weights import LEAST_BENEFIT, LEAST_SHORTER, PAUSE_WEIGHT
from homeostat.resolvers.remedies import Remedy, remedies


@dataclass(frozen=True, slots=True)
class RemedyResolver:
    """Proposes the remedies for the diagnoses that this engine can apply: changelog checkpointing, asynchronous
    progress tracking, one task for each slot, and a longer trigger interval.

    `plans_trigger`: something else plans the trigger interval, so it is left alone.
    """

    plans_trigger: bool = False
    name: str = "remedy"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            for remedy in remedies(view, diagnosis):
                if not remedy.refusal and self._is_worth_it(view, remedy):
                    yield _proposal(view, diagnosis, remedy)

    def _is_worth_it(self, view: View, remedy: Remedy) -> bool:
        """A longer trigger makes no batch shorter, but lets it end in time. Other remedies restart the query, which is
        not worth it where batches have time left."""
        if any(knob.kind == TRIGGER_S for knob in remedy.patch.values):
            return not self.plans_trigger
        limit = scaling_limit(view)
        has_time = limit is not None and not limit.nearly_late
        return not has_time and remedy.after_s <= (1.0 - LEAST_SHORTER) * remedy.batch_s


def _proposal(view: View, diagnosis: Diagnosis, remedy: Remedy) -> Proposal:
    touched = (diagnosis.component,) if diagnosis.component in view.topology else view.topology.names
    pause_s = max((view.spec(knob).apply_s for knob in remedy.patch.values), default=0.0)
    return Proposal(
        remedy.kind,
        (diagnosis,),
        remedy.patch,
        component=diagnosis.component,
        prediction=Prediction(remedy.gain, touched, remedy.effect),
        benefit=max(1.0 - remedy.after_s / remedy.batch_s, LEAST_BENEFIT),
        cost=PAUSE_WEIGHT * pause_s,
    )
