"""What each stage of the loop yields: symptoms, diagnoses, proposals and outcomes."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Literal

from homeostat.core.configuration import Patch
from homeostat.core.evidence import Evidence


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something that a detector noticed. `component` is empty if it concerns the whole application.

    The kind `unknown`, with `MissingMetric` as evidence, says that a detector lacks a metric: it cannot say whether
    there is a problem.
    """

    kind: str
    component: str = ""
    severity: float = 0.0
    evidence: Evidence = Evidence()
    instances: tuple[int, ...] = ()
    workers: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause, its probability, and the symptoms that it explains.

    `before_outcomes` is the probability that the diagnoser gave it, if the outcomes of earlier actions corrected that.
    """

    cause: str
    component: str = ""
    probability: float = 1.0
    evidence: Evidence = Evidence()
    symptoms: tuple[Symptom, ...] = ()
    instances: tuple[int, ...] = ()
    workers: tuple[str, ...] = ()
    id: str = ""
    before_outcomes: float | None = None


@dataclass(frozen=True, slots=True)
class Prediction:
    """The expected effect of an action. `gain` is ln(time before ÷ after) of the whole application at equal load.

    `touched` are the components that the action changes. If the speed of others changes too, something else has
    happened.
    """

    gain: float
    touched: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A patch that a resolver proposes, and why.

    `benefit` and `cost` have the same unit: the share of the load that is gained, and the share of the resources (and
    of the pause) that it takes. An alert is a proposal with a message and no patch.

    A plan has the remedies for several causes as `parts`, each with its own prediction. `left_out` names the remedies
    that it leaves out, and why.
    """

    kind: str
    because: tuple[Diagnosis, ...]
    patch: Patch = field(default_factory=Patch)
    component: str = ""
    prediction: Prediction | None = None
    benefit: float = 1.0
    cost: float = 0.0
    reversible: bool = True
    message: str = ""
    id: str = ""
    parts: tuple[Proposal, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def cause(self) -> str:
        return self.because[0].cause if self.because else ""

    @property
    def remedies(self) -> tuple[Proposal, ...]:
        """The parts of a plan. Any other proposal has one part: itself."""
        return self.parts or (self,)

    @property
    def probability(self) -> float:
        return max((diagnosis.probability for diagnosis in self.because), default=0.0)


Verdict = Literal["helped", "harmful", "failed", "unclear", "untestable", "confounded", "shrunk", "superseded"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """The result of an action, compared with its prediction."""

    verdict: Verdict
    observed_gain: float = float("nan")
    predicted_gain: float = float("nan")
    standard_error: float = float("nan")
    before: int = 0
    after: int = 0
    reason: str = ""
