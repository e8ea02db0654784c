"""More instances where the load needs them, fewer where it does not: every component in one plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from homeostat.core.configuration import Patch
from homeostat.core.findings import (
    DATA_SKEW,
    OVER_PROVISIONED,
    SCALE_DOWN,
    SCALE_UP,
    SLO_UNMET,
    SLOW_INSTANCE,
    UNDER_PROVISIONED,
    Diagnosis,
    Prediction,
    Proposal,
)
from homeostat.core.view import View
from homeostat.models.capacity import speed_up
from homeostat.resolvers.alert import alert_about
from homeostat.resolvers.sizing import Need, Sizing, since_onset, within_bounds

_NO_GAIN = 1e-3
_PAUSE_WEIGHT = 1.0 / 600.0


@dataclass(frozen=True, slots=True)
class ScaleUpResolver:
    """Sizes all components for the load at the sources, also those that a bottleneck before them still hides."""

    sizing: Sizing = Sizing()
    name: str = "scale-up"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        short = tuple(d for d in diagnoses if d.cause in (UNDER_PROVISIONED, SLO_UNMET))
        if not short:
            return
        skewed = frozenset(d.component for d in diagnoses if d.cause in (DATA_SKEW, SLOW_INSTANCE))
        needs = self.sizing.needs(view, skewed, last=since_onset(short, 60))
        wanted = [n for n in within_bounds(view, needs) if view.spec(n.knob).clip(n.instances) > n.present]
        if wanted:
            proposal = scaling(view, SCALE_UP, short, wanted)
            if proposal.prediction is not None and proposal.prediction.gain > _NO_GAIN:
                yield proposal
        for need in needs:
            diagnosis = next((d for d in short if d.component == need.component), short[0])
            if need.instances > view.spec(need.knob).maximum:
                why = f"{need.knob} is at its bound of {view.spec(need.knob).maximum:g}, {need.instances} are needed"
                yield alert_about(diagnosis, why)
            elif not need.enough:
                yield alert_about(diagnosis, f"no number of {need.knob} would do: its longest tasks bound the batch")


@dataclass(frozen=True, slots=True)
class ScaleDownResolver:
    """Gives back what the load does not need; with a throughput objective never below what that one needs."""

    sizing: Sizing = Sizing()
    name: str = "scale-down"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        idle = tuple(d for d in diagnoses if d.cause == OVER_PROVISIONED)
        if not idle or any(d.cause != OVER_PROVISIONED for d in diagnoses):
            return
        floor = view.objective.throughput_per_s or 0.0
        named = {d.component for d in idle}
        needs = self.sizing.needs(view, floor_per_s=floor, last=since_onset(idle, 60))
        wanted = [n for n in needs if n.component in named and view.spec(n.knob).clip(n.instances) < n.present]
        if wanted:
            yield scaling(view, SCALE_DOWN, idle, wanted)


def scaling(view: View, kind: str, because: tuple[Diagnosis, ...], needs: Sequence[Need]) -> Proposal:
    """One proposal for all of them, named after the one that changes most."""
    ordered = sorted(needs, key=lambda n: abs(math.log(n.instances / n.present)), reverse=True)
    gain = speed_up(view, {need.component: need.instances / need.present for need in needs})
    first = ordered[0]
    patch = Patch({need.knob: need.instances for need in ordered})
    now, after = view.configuration, view.configuration.patched(patch)
    paid = view.capabilities.cost(now)
    more = (view.capabilities.cost(after) - paid) / paid if paid else 0.0
    pause_s = max(view.spec(need.knob).apply_s for need in needs)
    severity = max((d.symptoms[0].severity for d in because if d.symptoms), default=0.5)
    text = ", ".join(f"{n.component} needs {n.exact:.2f}, has {n.present}" for n in ordered)
    return Proposal(
        kind,
        because,
        patch,
        component=first.component,
        prediction=Prediction(gain, tuple(n.component for n in ordered), text),
        benefit=max(severity, 0.2) if kind == SCALE_UP else -more,
        cost=0.02 * max(more, 0.0) + _PAUSE_WEIGHT * pause_s * 0.2,
    )
