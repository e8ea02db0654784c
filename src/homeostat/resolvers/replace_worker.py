"""Replace slow or lost workers."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.actions import REPLACE
from homeostat.core.causes import SLOW_INSTANCE
from homeostat.core.configuration import Patch
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.detectors.instance_skew import SlowWorkers
from homeostat.models.capacity import speed_up
from homeostat.resolvers.proposal_weights import DISTURBANCE

# The largest share of the workers that is replaced at once. A larger share fixes the problem sooner and pauses more of
# the work. If more than a third of the workers are slow, the workers are not the cause. Choice.
_MOST_AT_ONCE = 0.34
# How many times slower than its peers a worker is taken to be if its detector does not say. Choice.
_USUAL_SLOWNESS = 2.0


@dataclass(frozen=True, slots=True)
class ReplaceSlowResolver:
    """Replaces at most a third of a component's workers at once."""

    name: str = "replace-slow"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        total = len(view.window.latest.workers.ids) if view.window.latest is not None else 0
        for diagnosis in diagnoses:
            if diagnosis.cause != SLOW_INSTANCE or not diagnosis.workers:
                continue
            peers = max(2, int(view.parallelism(diagnosis.component))) if not view.micro_batch else max(2, total)
            workers = diagnosis.workers[: max(1, int(_MOST_AT_ONCE * peers))]
            ratio = self._slowness(diagnosis)
            text = f"{', '.join(workers)} as fast as the others ({ratio:.1f}× now)"
            yield Proposal(
                REPLACE,
                (diagnosis,),
                Patch(retire=frozenset(workers)),
                component=diagnosis.component,
                prediction=Prediction(self._gain(view, diagnosis, ratio, total), (diagnosis.component,), text),
                benefit=1.0 - 1.0 / ratio,
                cost=DISTURBANCE,
                reversible=False,
            )

    @staticmethod
    def _slowness(diagnosis: Diagnosis) -> float:
        for evidence in (diagnosis.evidence, *(symptom.evidence for symptom in diagnosis.symptoms)):
            slow = evidence.find(SlowWorkers)
            if slow is not None:
                return slow.times_peers
        return _USUAL_SLOWNESS

    @staticmethod
    def _gain(view: View, diagnosis: Diagnosis, ratio: float, total: int) -> float:
        """A dataflow waits for its slowest instance. A batch shares its tasks among all slots."""
        slow = len(diagnosis.workers)
        if view.micro_batch and total > slow:
            gain = total / (total - slow + slow / ratio)
            return speed_up(view, {diagnosis.component: gain}, by_slots=False)
        return speed_up(view, {diagnosis.component: ratio})
