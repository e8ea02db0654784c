"""Add instances if the load needs them, remove them if it does not: all components in one plan."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from homeostat.core.actions import SCALE_DOWN, SCALE_UP
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import (
    DATA_SKEW,
    HASH_IMBALANCE,
    OVER_PROVISIONED,
    SLO_UNMET,
    SLOW_INSTANCE,
    SOURCE_SKEW,
    UNDER_PROVISIONED,
    cause_of,
)
from homeostat.core.configuration import ADMISSION_ROOM, ROWS_PER_TRIGGER, Knob, Patch, Value
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.symptoms import PRESSURE, SLO_VIOLATION
from homeostat.core.view import View
from homeostat.models.application_model import size_assumptions
from homeostat.models.capacity import loads, speed_up
from homeostat.models.headroom import until_growth_s
from homeostat.resolvers.admit_more import rows_for
from homeostat.resolvers.model_trust import doubt
from homeostat.resolvers.paper_actions import SHRINK_FACTOR, scale_down_target, scale_up_target
from homeostat.resolvers.proposal_weights import LEAST_BENEFIT, LONGEST_MEAN, RESOURCE_WEIGHT, USUAL_SEVERITY
from homeostat.resolvers.sizing import Need, Sizing, since_onset, within_bounds

# How far predictions may be off (ln) before the size is chosen without the model, if the objective does not say. A
# smaller value gives up a useful model for noise. Choice: about 65 %; `largest_error` of the settings replaces it.
MOST_ERROR = 0.5
# A smaller predicted gain (ln) is a rounding error: another component limits the throughput.
_NO_GAIN = 1e-3
# Observations before the first redeployment with a noisy load. Fewer act sooner, but with a rough idea of the noise, by
# which headroom is planned. Shrinking can wait longer, because nothing is wrong. Choice.
_LEAST_TO_GROW, _LEAST_TO_SHRINK = 6, 30
# A pause leaves the application behind for this many times as long: it must also catch up. A choice.
_DISTURBED_TIMES = 2.0
# Their product is `PAUSE_WEIGHT`. Both remain, because recorded runs must repeat to the bit.
_PAUSE_WEIGHT, _PAUSE_SHARE = 1.0 / 600.0, 0.2


@dataclass(frozen=True, slots=True)
class ScaleUpResolver:
    """Sizes all components for the load at the sources, including bottlenecks that are hidden behind the present one.

    If predictions were off by more than the objective allows (or `most_error`), it takes the step of the paper: by the
    pressure or, if nothing is under pressure, by how far the objective is missed.
    """

    sizing: Sizing = Sizing()
    most_error: float = MOST_ERROR
    name: str = "scale-up"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        short = tuple(d for d in diagnoses if d.cause in (UNDER_PROVISIONED, SLO_UNMET))
        if not short and self.sizing.is_behind(view):
            # A fault that is fixed leaves a backlog, which the present executors would take long to process.
            short = tuple(d for d in diagnoses if _can_be_fixed(view, d))
        if not short:
            return
        skewed_components = frozenset(d.component for d in diagnoses if _is_mended_elsewhere(d))
        needs = self.sizing.needs(view, skewed_components, last=since_onset(short, LONGEST_MEAN))
        if _too_early(view, needs, _LEAST_TO_GROW):
            return
        needs = [need for each in needs if (need := self._trusted_need(view, each, short)) is not None]
        growing = [n for n in within_bounds(view, needs) if _grows(view, n)]
        if growing:
            proposal = scaling(
                view, SCALE_UP, short, [*growing, *self._too_large(view, needs, growing, skewed_components)]
            )
            if proposal.prediction is not None and proposal.prediction.gain > _NO_GAIN:
                yield proposal
        for need in needs:
            diagnosis = next((d for d in short if d.component == need.component), short[0])
            if need.instances > view.spec(need.knob).maximum:
                why = f"{need.knob} is at its bound of {view.spec(need.knob).maximum:g}, {need.instances} are needed"
                yield alert_about(diagnosis, why)
            elif not need.enough:
                yield alert_about(
                    diagnosis, f"no number of {need.knob} is enough, because its longest tasks limit the batch"
                )

    def _trusted_need(self, view: View, need: Need, short: Sequence[Diagnosis]) -> Need | None:
        """The need by the model or, if predictions were too far off, by the symptoms. None without symptoms."""
        why = doubt(view, need.component, self.most_error)
        if not why:
            return need
        symptoms = [symptom for diagnosis in short for symptom in diagnosis.symptoms]
        pressures = [s.severity for s in symptoms if s.kind == PRESSURE and s.component == need.component]
        violations = [s.severity for s in symptoms if s.kind == SLO_VIOLATION and not s.component]
        if not pressures and not violations:
            return None
        share = max(pressures or violations)
        by = f"the pressure of {share:.0%}" if pressures else f"the {share:.0%} that the objective is missed by"
        target = max(need.present + 1, scale_up_target(share, need.present))
        return replace(
            need, exact=float(target), enough=True, partitions={}, note=f"{why}, so the size is chosen by {by}"
        )

    @staticmethod
    def _too_large(
        view: View, needs: Sequence[Need], growing: Sequence[Need], skewed_components: frozenset[str]
    ) -> list[Need]:
        """What the same load leaves idle elsewhere, to shrink in the same redeployment, if all of it was measured."""
        if view.micro_batch or any(view.spec(need.knob).live for need in growing) or skewed_components:
            return []
        floor = (view.objective.throughput_per_s or 0.0) > 0
        measured = {load.component for load in loads(view).values() if load.complete}
        return [
            need
            for need in needs
            if not floor and need.component in measured and view.spec(need.knob).clip(need.instances) < need.present
        ]


@dataclass(frozen=True, slots=True)
class ScaleDownResolver:
    """Removes instances that the load does not need, but keeps those that a throughput objective needs.

    If predictions were off by more than the objective allows (or `most_error`), idle components shrink by the step of
    the paper.
    """

    sizing: Sizing = Sizing()
    most_error: float = MOST_ERROR
    name: str = "scale-down"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        idle = tuple(d for d in diagnoses if d.cause == OVER_PROVISIONED)
        if not idle or any(d.cause != OVER_PROVISIONED and not cause_of(d.cause).speed_unaffected for d in diagnoses):
            return
        floor = view.objective.throughput_per_s or 0.0
        idle_components = {d.component for d in idle}
        needs = self.sizing.needs(view, floor_per_s=floor, last=since_onset(idle, LONGEST_MEAN))
        needs = [need for each in needs if (need := self._trusted_need(view, each, idle_components)) is not None]
        smaller = [need for need in needs if view.spec(need.knob).clip(need.instances) < need.present]
        if _too_early(view, smaller, _LEAST_TO_SHRINK) or not any(n.component in idle_components for n in smaller):
            return
        if not _is_worth_shrinking(view, smaller):
            return
        # The other components would be found idle later and need a second redeployment.
        shrinking = [n for n in smaller if n.component in idle_components or not view.spec(n.knob).live]
        yield scaling(view, SCALE_DOWN, idle, shrinking)

    def _trusted_need(self, view: View, need: Need, idle: set[str]) -> Need | None:
        """The need by the model or, if predictions were too far off, a fifth less for what is idle."""
        why = doubt(view, need.component, self.most_error)
        if not why:
            return need
        if need.component not in idle:
            return None
        least = need.instances if view.objective.throughput_per_s else math.ceil(view.spec(need.knob).minimum)
        target = scale_down_target(need.present, SHRINK_FACTOR, least)
        return replace(
            need, exact=float(target), enough=True, partitions={}, note=f"{why}, so it shrinks by a fixed step"
        )


def _is_mended_elsewhere(diagnosis: Diagnosis) -> bool:
    """Whether it is a fault that another action fixes better than adding instances."""
    cause = cause_of(diagnosis.cause)
    return cause.fault and bool(cause.mended_by) and not cause.workers_help


def _can_be_fixed(view: View, diagnosis: Diagnosis) -> bool:
    """Whether this engine can fix it now, so that only a backlog remains."""
    knobs = view.capabilities.knobs
    if diagnosis.cause == SLOW_INSTANCE:
        return view.capabilities.can_replace and bool(diagnosis.workers)
    if diagnosis.cause not in (DATA_SKEW, SOURCE_SKEW, HASH_IMBALANCE) or diagnosis.component not in view.topology:
        return False
    component = view.topology[diagnosis.component]
    knob = component.partitions if diagnosis.cause == HASH_IMBALANCE else component.spread
    return knob is not None and knob in knobs and view.spread(diagnosis.component) == 1


def _too_early(view: View, needs: Sequence[Need], least: int) -> bool:
    """A redeployment stops everything, so the noise that headroom is planned by must be known before it."""
    stops = any(not view.spec(need.knob).live for need in needs)
    noisy = any(load.noise.sigma > 0 for load in loads(view).values())
    return stops and noisy and len(view.history) < least


def _is_worth_shrinking(view: View, smaller: Sequence[Need]) -> bool:
    """If the policy plans by risk: whether what is saved until the load comes back exceeds the cost of two changes.

    Changes without a pause cost nothing here: the headroom covers the growth until the next one.
    """
    specs = [view.spec(need.knob) for need in smaller]
    pause_s = max((spec.apply_s for spec in specs if not spec.live), default=0.0)
    if view.violation_cost <= 0 or pause_s <= 0:
        return True
    room = min(
        math.log(max(need.instances, 1) / (need.exact * math.sqrt(loads(view)[need.component].target)))
        for need in smaller
    )
    saved = sum(
        spec.cost * (need.present - spec.clip(need.instances)) for need, spec in zip(smaller, specs, strict=True)
    )
    change_cost = view.violation_cost * view.capabilities.cost(view.configuration) * 2.0 * _DISTURBED_TIMES * pause_s
    return saved * until_growth_s(view, room) >= change_cost


def _grows(view: View, need: Need) -> bool:
    return view.spec(need.knob).clip(need.instances) > need.present or bool(need.partitions)


def _admission(view: View, needs: Sequence[Need], restarting: bool) -> dict[Knob, Value]:
    """The limit on rows per trigger grows with the load that is planned for. Otherwise it would be the next bottleneck.

    If only this limit requires a restart, the change waits until the limit is below the load itself.
    """
    rows: dict[Knob, Value] = {}
    for need in needs:
        knob = Knob(ROWS_PER_TRIGGER, view.topology[need.component].query)
        spec, bound = view.capabilities.knobs.get(knob), view.configuration.values.get(knob)
        target = rows_for(view, need.wanted_per_s)
        if spec is None or bound is None or not target > bound:
            continue
        if spec.live or restarting or target > ADMISSION_ROOM * bound:
            rows[knob] = int(spec.clip(target))
    return rows


def _note(need: Need) -> str:
    return f" ({need.note})" if need.note else ""


def scaling(view: View, kind: str, because: tuple[Diagnosis, ...], needs: Sequence[Need]) -> Proposal:
    """One proposal for all needs, named after the component that changes most."""
    largest_first = sorted(needs, key=lambda n: abs(math.log(n.instances / n.present)), reverse=True)
    finer = {name: count for need in needs for name, count in need.partitions.items()}
    gain = speed_up(view, {need.component: need.instances / need.present for need in needs}, partitions=finer)
    first = largest_first[0]
    knobs = {knob: count for name, count in finer.items() if (knob := view.topology[name].partitions) is not None}
    patch = Patch(
        {need.knob: need.instances for need in largest_first} | knobs | _admission(view, largest_first, bool(knobs))
    )
    now, after = view.configuration, view.configuration.patched(patch)
    cost = view.capabilities.cost(now)
    more = (view.capabilities.cost(after) - cost) / cost if cost else 0.0
    pause_s = max(view.spec(knob).apply_s for knob in patch.values)
    severity = max((d.symptoms[0].severity for d in because if d.symptoms), default=USUAL_SEVERITY)
    sizes = [f"{n.component} needs {n.exact:.2f}, has {n.present}" + _note(n) for n in largest_first]
    doubts = [f"unknown: {note}" for note in size_assumptions(view, {n.component: n.instances for n in needs})]
    return Proposal(
        kind,
        because,
        patch,
        component=first.component,
        prediction=Prediction(gain, tuple(n.component for n in largest_first), ", ".join(sizes + doubts)),
        benefit=max(severity, LEAST_BENEFIT) if kind == SCALE_UP else -more,
        cost=RESOURCE_WEIGHT * max(more, 0.0) + _PAUSE_WEIGHT * pause_s * _PAUSE_SHARE,
    )
