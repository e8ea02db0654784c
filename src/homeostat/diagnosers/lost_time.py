"""Names the causes that cost batches time, each with its probability. None suppresses another."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from homeostat.core.causes import DATA_SKEW, SOURCE_SKEW
from homeostat.core.evidence import LostTime
from homeostat.core.findings import Diagnosis, Symptom
from homeostat.core.symptoms import FAILED_ATTEMPTS, LOST_TIME, LOST_WORKERS, STILL_WATERMARK
from homeostat.core.time_causes import DYING_EXECUTORS, FAILING_TASKS, POISON_ROW, STALLED_WATERMARK
from homeostat.core.view import View
from homeostat.detectors.failed_work import FailedAttempts
from homeostat.diagnosers.probabilities import EVEN_ODDS, REPORTED
from homeostat.diagnosers.strengths import Strengths, features_of, shipped_strengths

# Failed attempts are reported by the engine. Why rows are uneven, the diagnoser `evidence` weighs.
_WEIGHED_ELSEWHERE = frozenset({FAILING_TASKS, DATA_SKEW, SOURCE_SKEW})


@dataclass(frozen=True, slots=True)
class LostTimeDiagnoser:
    """`likely`: a cause with at least this probability is named. One half means more likely than not (choice)."""

    likely: float = EVEN_ODDS
    strengths: Strengths = field(default_factory=shipped_strengths)
    name: str = "lost-time"
    while_unsettled: ClassVar[bool] = True

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
        losses = [(s, s.evidence) for s in symptoms if s.kind == LOST_TIME and isinstance(s.evidence, LostTime)]
        all_lost_s = sum(evidence.lost_s for _, evidence in losses)
        for symptom, evidence in sorted(losses, key=lambda pair: -pair[1].lost_s):
            probability = self.strengths.probability(evidence.cause, features_of(evidence, all_lost_s))
            if probability >= self.likely and evidence.cause not in _WEIGHED_ELSEWHERE:
                yield Diagnosis(
                    evidence.cause,
                    symptom.component,
                    probability,
                    evidence,
                    (symptom,),
                    symptom.instances,
                    symptom.workers,
                )
        yield from _reported(symptoms)


def _reported(symptoms: Sequence[Symptom]) -> Iterator[Diagnosis]:
    """The engine itself reports these causes, so there is nothing to weigh."""
    for symptom in symptoms:
        match symptom.kind, symptom.evidence:
            case (kind, FailedAttempts(same_partition=partition)) if kind == FAILED_ATTEMPTS:
                cause = POISON_ROW if partition is not None else FAILING_TASKS
                yield _as_reported(cause, symptom)
            case (kind, _) if kind == LOST_WORKERS:
                yield _as_reported(DYING_EXECUTORS, symptom)
            case (kind, _) if kind == STILL_WATERMARK:
                yield _as_reported(STALLED_WATERMARK, symptom)


def _as_reported(cause: str, symptom: Symptom) -> Diagnosis:
    return Diagnosis(cause, symptom.component, REPORTED, symptom.evidence, (symptom,), symptom.instances)
