"""More instances before the load needs them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.actions import SCALE_UP
from homeostat.core.causes import RISE_AHEAD, cause_of
from homeostat.core.evidence import LoadRise
from homeostat.core.findings import Diagnosis, Proposal
from homeostat.core.view import View
from homeostat.resolvers.model_trust import doubted
from homeostat.resolvers.scale import scaling
from homeostat.resolvers.sizing import Sizing, within_bounds


def is_trouble(diagnosis: Diagnosis) -> bool:
    """Whether something has to be mended before the loop may act ahead."""
    cause = cause_of(diagnosis.cause)
    return not (cause.harmless or cause.state_risk)


@dataclass(frozen=True, slots=True)
class ScaleAheadResolver:
    """Sizes all components for the load that is forecast. Trouble that is there already goes first, and a component
    whose predictions have been off by more than the objective or else `most_error` allows is left to what it shows
    when the load has come."""

    sizing: Sizing = Sizing()
    most_error: float = 0.5
    name: str = "scale-ahead"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        ahead = tuple(d for d in diagnoses if d.cause == RISE_AHEAD)
        if not ahead or any(is_trouble(d) for d in diagnoses):
            return
        needs = within_bounds(view, self.sizing.needs(view, floor_per_s=expected_per_s(ahead)))
        relied = [need for need in needs if not doubted(view, need.component, self.most_error)]
        wanted = [need for need in relied if view.spec(need.knob).clip(need.instances) > need.present]
        if wanted:
            yield scaling(view, SCALE_UP, ahead, wanted)


def expected_per_s(ahead: Sequence[Diagnosis]) -> float:
    """The load that is forecast; 0 if none is."""
    rises = (diagnosis.evidence.find(LoadRise) for diagnosis in ahead)
    return max((rise.expected_per_s for rise in rises if rise is not None), default=0.0)
