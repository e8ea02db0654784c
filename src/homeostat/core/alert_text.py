"""The text of an alert: what is wrong, where, what was measured, and what to do about it."""

from __future__ import annotations

from homeostat.core.actions import ALERT
from homeostat.core.causes import cause_of
from homeostat.core.findings import Diagnosis, Proposal

# Workers named in a message, which must stay readable; `explain` shows the others. A choice.
WORKERS_NAMED = 3


def alert_about(diagnosis: Diagnosis, why: str = "") -> Proposal:
    """Return the alert for a diagnosis; `why` says why the loop cannot fix it."""
    return Proposal(ALERT, (diagnosis,), component=diagnosis.component, message=message(diagnosis, why))


def message(diagnosis: Diagnosis, why: str = "") -> str:
    """Return title, place, measurements and advice in one line."""
    cause = cause_of(diagnosis.cause)
    where = diagnosis.component or "the application"
    workers = f" on {', '.join(diagnosis.workers[:WORKERS_NAMED])}" if diagnosis.workers else ""
    details = "; ".join(filter(None, (*_measurements(diagnosis), why)))
    measured = f" ({details})" if details else ""
    return f"{cause.title} at {where}{workers}{measured}. What to do: {cause.advice}."


def _measurements(diagnosis: Diagnosis) -> list[str]:
    """Return what the first symptom says, and what the diagnosis adds to it."""
    symptoms = (symptom.evidence.summary() for symptom in diagnosis.symptoms)
    return list(dict.fromkeys((next(filter(None, symptoms), ""), diagnosis.evidence.summary())))
