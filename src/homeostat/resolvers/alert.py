"""Alert a person: what is wrong, where, what was measured, and what to do about it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.alerting import alert_about
from homeostat.core.causes import Cause, cause_of
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.view import View


@dataclass(frozen=True, slots=True)
class Alert:
    """Alerts about each diagnosis of `causes`. If `causes` is empty: about all of them, or with `declared_only` about
    those whose cause declares an alert.

    Some causes often end by themselves, or are being fixed: alerts about them wait for `patience_s`. A longer time
    means fewer and later alerts (choice).
    """

    causes: frozenset[str] = frozenset()
    declared_only: bool = False
    patience_s: float = 300.0
    name: str = "alert"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        for diagnosis in diagnoses:
            cause = cause_of(diagnosis.cause)
            alerts = diagnosis.cause in self.causes if self.causes else cause.alerts or not self.declared_only
            if alerts and self._has_stood(view, diagnosis, cause):
                yield alert_about(diagnosis)

    def _has_stood(self, view: View, diagnosis: Diagnosis, cause: Cause) -> bool:
        since_s = view.standing_since_s.get((diagnosis.cause, diagnosis.component), view.now_s)
        return not cause.alert_after_patience or view.now_s - since_s >= self.patience_s
