"""Add instances before a forecast load arrives."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.actions import SCALE_UP
from homeostat.core.causes import RISE_AHEAD, cause_of
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.view import View
from homeostat.resolvers.model_trust import is_doubted
from homeostat.resolvers.scale import MOST_ERROR, scaling
from homeostat.resolvers.sizing import Sizing, within_bounds


def is_trouble(diagnosis: Diagnosis) -> bool:
    """Whether it must be fixed before the loop may act on a forecast."""
    cause = cause_of(diagnosis.cause)
    return not (cause.harmless or cause.state_risk)


@dataclass(frozen=True, slots=True)
class ScaleAheadResolver:
    """Sizes all components for the forecast load, unless there is a problem already.

    A component whose predictions were off by more than the objective allows (or `most_error`, see `scale`) is left out.
    It is sized by its symptoms when the load has come.
    """

    sizing: Sizing = Sizing()
    most_error: float = MOST_ERROR
    name: str = "scale-ahead"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        ahead = tuple(d for d in diagnoses if d.cause == RISE_AHEAD)
        if not ahead or any(is_trouble(d) for d in diagnoses):
            return
        needs = within_bounds(view, self.sizing.needs(view, floor_per_s=expected_per_s(ahead)))
        trusted_needs = [need for need in needs if not is_doubted(view, need.component, self.most_error)]
        growing = [need for need in trusted_needs if view.spec(need.knob).clip(need.instances) > need.present]
        if growing:
            yield scaling(view, SCALE_UP, ahead, growing)


def expected_per_s(ahead: Sequence[Diagnosis]) -> float:
    """The highest load that is forecast; 0 without a forecast."""
    rises = (diagnosis.evidence.find(LoadRise) for diagnosis in ahead)
    return max((rise.expected_per_s for rise in rises if rise is not None), default=0.0)
