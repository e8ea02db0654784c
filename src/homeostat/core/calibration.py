"""Corrects the probabilities of causes by the outcomes of this application's actions, within a limit.

The probabilities of diagnosers come from other runs. In this application, a cause may be more or less frequent. For
each cause the log-odds are shifted by one number: b = Σ(y − p) ÷ (prior + Σ p(1 − p)) over the judged actions against
it, where p is what the diagnoser said and y is 1 if the action helped. That is one step of a logistic regression with
only an intercept, whose prior is normal around zero. If actions help as often as the probabilities say, b is zero. It
does not depend on the order of the outcomes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

from homeostat.core.findings import Diagnosis, Verdict

# The precision of the prior around no correction: a standard deviation of half a unit of log-odds. It counts as much as
# sixteen outcomes at even odds, so that one unlucky outcome moves 0.90 to 0.88 and three move it to 0.83. More trusts
# the fitted table longer, less learns sooner and from luck. A choice.
PRIOR_PRECISION = 4.0
# No history shifts the log-odds by more: 0.90 stays between 0.77 and 0.96. The current measurements must be able to
# outweigh it. A choice. It must not exceed one, or a further success could lower the shift.
LARGEST_SHIFT = 1.0
# Outcomes that are kept for each cause: older ones were made by another version of the application. A choice.
OUTCOMES_KEPT = 50
_RIGHT: tuple[Verdict, ...] = ("helped", "shrunk")
_WRONG: tuple[Verdict, ...] = ("failed", "harmful")


@dataclass(frozen=True, slots=True)
class JudgedCause:
    """An action against a cause was judged: how probable the diagnoser had called the cause, and whether it helped."""

    probability: float
    helped: bool


JudgedCauses = Mapping[str, tuple[JudgedCause, ...]]


def with_verdict(judged: JudgedCauses, cause: str, probability: float, verdict: str) -> JudgedCauses:
    """Return the outcomes with one more. Verdicts that prove nothing do not count. Neither do causes with a probability
    of 0 or 1: those come from a rule, not from an estimate."""
    if not cause or not 0.0 < probability < 1.0 or verdict not in _RIGHT + _WRONG:
        return judged
    outcome = JudgedCause(probability, verdict in _RIGHT)
    return {**judged, cause: (*judged.get(cause, ()), outcome)[-OUTCOMES_KEPT:]}


def shift(outcomes: tuple[JudgedCause, ...]) -> float:
    """The correction to the log-odds of the cause."""
    surplus = math.fsum(outcome.helped - outcome.probability for outcome in outcomes)
    information = math.fsum(outcome.probability * (1.0 - outcome.probability) for outcome in outcomes)
    return max(-LARGEST_SHIFT, min(LARGEST_SHIFT, surplus / (PRIOR_PRECISION + information)))


def corrected(diagnosis: Diagnosis, judged: JudgedCauses) -> Diagnosis:
    """The diagnosis with the probability that this application's outcomes suggest."""
    probability = diagnosis.probability
    correction = shift(judged.get(diagnosis.cause, ()))
    if not correction or not 0.0 < probability < 1.0:
        return diagnosis
    log_odds = math.log(probability) - math.log1p(-probability) + correction
    return replace(diagnosis, probability=1.0 / (1.0 + math.exp(-log_odds)), before_outcomes=probability)


def stated_probability(diagnosis: Diagnosis) -> float:
    """The probability that the diagnoser gave, before outcomes corrected it."""
    return diagnosis.probability if diagnosis.before_outcomes is None else diagnosis.before_outcomes
