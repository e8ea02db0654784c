"""The verdict on each remedy of a plan, from the measurements of the component that it changes."""

from __future__ import annotations

import math
from typing import NamedTuple

from homeostat.core.findings import Outcome, Proposal, Verdict
from homeostat.core.loop_state import ActiveAction, State
from homeostat.core.trial import TAKEN_BACK, Trial, component_gain

# Standard errors by which the time of a component must have changed. Two are about 95 %.
_ERRORS = 2.0


class PartOutcome(NamedTuple):
    part: Proposal
    verdict: Verdict
    reason: str = ""


def part_outcomes(state: State, action: ActiveAction, trial: Trial | None, outcome: Outcome) -> tuple[PartOutcome, ...]:
    """One outcome for each part. An action that is not a plan has one part: itself.

    The plan is judged as a whole first. Then a part has failed if its cause still stands and its component is no faster
    at equal rows. A part whose component is faster has helped, also in a plan that did not. If nothing distinguishes
    the parts of a failed plan, all of them have failed.
    """
    parts = action.proposal.remedies
    alike = tuple(PartOutcome(part, outcome.verdict, outcome.reason) for part in parts)
    if len(parts) == 1 or trial is None or outcome.verdict not in ("helped", *TAKEN_BACK):
        return alike
    judged = tuple(_judged(state, trial, part, outcome) for part in parts)
    if outcome.verdict in TAKEN_BACK and not any(each.verdict in TAKEN_BACK for each in judged):
        return alike
    return judged


def _judged(state: State, trial: Trial, part: Proposal, outcome: Outcome) -> PartOutcome:
    gain, error = component_gain(trial, part.component)
    stands = any((diagnosis.cause, diagnosis.component) in state.diagnoses for diagnosis in part.because)
    faster = math.isfinite(gain) and gain > _ERRORS * error
    where = part.component or "the application"
    if outcome.verdict == "helped":
        if stands and not faster and math.isfinite(gain):
            return PartOutcome(
                part, "failed", f"its cause remains, and {where} is not faster with the same number of rows"
            )
        return PartOutcome(part, "helped")
    if faster and not stands:
        return PartOutcome(part, "helped", f"its cause is gone, and {where} is faster with the same number of rows")
    return PartOutcome(part, outcome.verdict, outcome.reason)
