"""One plan for all current causes: combines their remedies and predicts the result."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

from homeostat.core.actions import ADJUST_SKEW, GATHER, PLAN, REPLACE, REVERT, SCALE_DOWN
from homeostat.core.arbiter import Refusal, Refused
from homeostat.core.configuration import Knob, Patch, Value
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.view import View
from homeostat.models.combined import Mends, combined_gain

# These save resources, so they wait until there are no problems, or they undo something. They are done alone.
_ALONE = frozenset({SCALE_DOWN, GATHER, REVERT})


@dataclass(frozen=True, slots=True)
class OnePlan:
    """Joins the remedies whose knobs are different, in the order of their rank.

    A second remedy for the same unevenness is left out, and so is one whose knobs a better one sets. A size is planned
    as if the other remedies had worked, so that nothing grows because of problems that they fix.
    """

    name: str = "one-plan"

    def compose(self, view: View, remedies: Sequence[Proposal]) -> tuple[Proposal, tuple[Refused, ...]]:
        parts, left_out = [remedies[0]], []
        for remedy in remedies[1:]:
            reason = _reason_against(view, parts, remedy)
            if reason is None:
                parts.append(remedy)
            else:
                left_out.append((remedy, reason))
        parts = _with_wider_spreads(view, parts)
        if len(parts) == 1:
            return parts[0], tuple(left_out)
        sentences = tuple(f"Without {each.kind} of {_place(each)}: {reason.detail}" for each, reason in left_out)
        return _plan(view, parts, sentences), tuple(left_out)


def _reason_against(view: View, parts: Sequence[Proposal], remedy: Proposal) -> Refusal | None:
    first = parts[0]
    if first.kind in _ALONE or remedy.kind in _ALONE or _shrinks(view, remedy):
        return Refusal(f"{first.kind} goes first", "it waits until there are no other problems")
    for part in parts:
        same_place = part.component == remedy.component
        if part.kind == remedy.kind == REPLACE:
            return Refusal(f"{part.kind} goes first", "only one replacement is done at a time")
        if part.kind == remedy.kind == ADJUST_SKEW and same_place:
            return Refusal("not needed", f"{_words(part)} evens out the same rows")
        shared = [knob for knob in remedy.patch.values if knob in part.patch.values]
        if shared:
            return Refusal(f"{part.kind} goes first", f"{part.kind} of {_place(part)} sets {shared[0]}")
    return None


def _shrinks(view: View, remedy: Proposal) -> bool:
    cost = view.capabilities.cost
    return cost(view.configuration.patched(remedy.patch)) < cost(view.configuration)


def _plan(view: View, parts: Sequence[Proposal], left_out: tuple[str, ...]) -> Proposal:
    values: dict[Knob, Value] = {}
    retire: frozenset[str] = frozenset()
    because: dict[tuple[str, str], Diagnosis] = {}
    for part in parts:
        values |= part.patch.values
        retire |= part.patch.retire
        because |= {(d.cause, d.component): d for d in part.because if (d.cause, d.component) not in because}
    return Proposal(
        PLAN,
        tuple(because.values()),
        Patch(values, retire),
        component=parts[0].component,
        prediction=_prediction(view, parts),
        benefit=max(part.benefit for part in parts),
        cost=sum(part.cost for part in parts) - _shared_pauses(view, parts),
        reversible=any(part.reversible for part in parts),
        parts=tuple(parts),
        left_out=left_out,
    )


def _with_wider_spreads(view: View, parts: Sequence[Proposal]) -> list[Proposal]:
    """Rows that are distributed to every slot or instance must also reach new ones. This includes rows that are already
    distributed."""
    planned = {knob: value for part in parts for knob, value in part.patch.values.items()}
    wider: dict[Knob, Value] = {}
    for component in view.topology:
        knob, now = component.spread, view.configuration.get(component.scaled_by, 0)
        if knob is None or knob not in view.capabilities.knobs or not now:
            continue
        times, spread = planned.get(component.scaled_by, 0) / now, planned.get(knob, view.spread(component.name))
        if times > 1.0 and spread > 1:
            wider[knob] = view.spec(knob).clip(math.ceil(spread * times))

    def widened(part: Proposal) -> Proposal:
        scaled = {component.spread for component in view.topology if component.scaled_by in part.patch.values}
        values = {knob: wider.get(knob, value) for knob, value in part.patch.values.items()}
        values |= {knob: value for knob, value in wider.items() if knob in scaled and knob not in planned}
        return replace(part, patch=Patch(values, part.patch.retire))

    return [widened(part) for part in parts] if wider else list(parts)


def _prediction(view: View, parts: Sequence[Proposal]) -> Prediction | None:
    predictions = [part.prediction for part in parts if part.prediction is not None]
    if len(predictions) < len(parts):
        return None
    touched = dict.fromkeys(name for prediction in predictions for name in prediction.touched)
    mended = frozenset(part.component for part in parts if part.kind in (ADJUST_SKEW, REPLACE))
    patch = {knob: value for part in parts for knob, value in part.patch.values.items()}
    gain = combined_gain(view, Mends(mended, patch))
    alone = max(prediction.gain for prediction in predictions)
    text = "; ".join(prediction.text for prediction in predictions if prediction.text)
    return Prediction(gain if math.isfinite(gain) else alone, tuple(touched), text)


def _shared_pauses(view: View, parts: Sequence[Proposal]) -> float:
    """The cost of the restarts that the plan saves, because all of its parts share one restart."""
    restarting = sorted(p.cost for p in parts if any(not view.spec(knob).live for knob in p.patch.values))
    return sum(restarting[:-1])


def _place(proposal: Proposal) -> str:
    return proposal.component or "the application"


def _words(part: Proposal) -> str:
    knobs = ", ".join(f"{knob} = {value:g}" for knob, value in sorted(part.patch.values.items()))
    return f"{part.kind} ({knobs})" if knobs else part.kind
