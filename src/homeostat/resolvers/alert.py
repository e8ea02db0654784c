"""Alerts a person: what is wrong, where, what was measured, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from homeostat.core.alert_text import alert_about
from homeostat.core.causes import SLO_UNMET, UNDER_PROVISIONED, cause_of
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.source_causes import RETENTION_NEAR
from homeostat.core.view import View
from homeostat.models.caught_up import caught_up_in
from homeostat.resolvers.remedies import remedies

# These are about rows that wait. Their alerts say when that will be over.
_LATE = frozenset({SLO_UNMET, UNDER_PROVISIONED, RETENTION_NEAR})


@dataclass(frozen=True, slots=True)
class Alert:
    """Alerts about each diagnosis of `causes`. If `causes` is empty: about all of them, or with `declared_only` about
    those whose cause declares an alert.

    Some causes often end by themselves, or an action can fix them: alerts about them wait for `patience_s`. A longer
    time means fewer and later alerts (choice). An alert names the settings that would help.
    """

    causes: frozenset[str] = frozenset()
    declared_only: bool = False
    patience_s: float = 300.0
    name: str = "alert"
    while_unsettled: ClassVar[bool] = True

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            cause = cause_of(diagnosis.cause)
            alerts = diagnosis.cause in self.causes if self.causes else cause.alerts or not self.declared_only
            if not alerts:
                continue
            possible = remedies(view, diagnosis)
            is_mended = any(remedy.mends and not remedy.refusal for remedy in possible)
            if self._has_stood(view, diagnosis, waits=is_mended or cause.alert_after_patience):
                sentences = [remedy.sentence for remedy in possible]
                yield alert_about(diagnosis, "; ".join([*sentences, *_catching_up(view, diagnosis)]))

    def _has_stood(self, view: View, diagnosis: Diagnosis, *, waits: bool) -> bool:
        since_s = view.standing_since_s.get((diagnosis.cause, diagnosis.component), view.now_s)
        return not waits or view.now_s - since_s >= self.patience_s


def _catching_up(view: View, diagnosis: Diagnosis) -> Iterator[str]:
    if diagnosis.cause in _LATE:
        catch_up = caught_up_in(view)
        if catch_up is not None:
            yield catch_up.sentence
