"""Let the planner choose trigger, rows, partitions and executors together: the cheapest that meet the objective."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.actions import RETUNE, SCALE_DOWN, SCALE_UP
from homeostat.core.alert_text import alert_about
from homeostat.core.causes import (
    DATA_SKEW,
    HASH_IMBALANCE,
    OVER_PROVISIONED,
    RISE_AHEAD,
    SLO_UNMET,
    SLOW_INSTANCE,
    UNDER_PROVISIONED,
)
from homeostat.core.configuration import EXECUTORS, EXECUTORS_KNOB, TRIGGER_S
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.objective import GivesWay
from homeostat.core.view import View
from homeostat.detectors.slo_violation import LATENCY, ObjectiveMissed
from homeostat.models.application_model import ApplicationModel, application_model
from homeostat.models.batch_replay import BatchModel
from homeostat.models.capacity import level
from homeostat.models.plan_choice import Plan, plan
from homeostat.models.planning_question import Candidate, Goal, Proposer, Steady
from homeostat.models.trend import rise_per_s
from homeostat.resolvers.model_trust import is_doubted
from homeostat.resolvers.proposal_weights import (
    LEAST_BENEFIT,
    LONGEST_MEAN,
    PAUSE_WEIGHT,
    RESOURCE_WEIGHT,
    USUAL_SEVERITY,
)
from homeostat.resolvers.scale import ScaleDownResolver, ScaleUpResolver
from homeostat.resolvers.scale_ahead import ScaleAheadResolver, expected_per_s, is_trouble
from homeostat.resolvers.sizing import SHORTEST_TRIGGER_S, since_onset
from homeostat.strict.units import clock

# How much cost (in instances) a plan must save to be worth a change. Less would change settings for nothing. Choice.
_LEAST_SAVING = 1.0
# By how much a rise is extrapolated at most. A larger factor would trust a short rise too far. Choice.
_MOST_RISE = 1.5
# A rise is extrapolated over this many times what a change takes: this one and the next one.
_CHANGES_AHEAD = 2.0


@dataclass(frozen=True, slots=True)
class RetuneResolver:
    """Plans for the present load and its variation, or for a higher load that is forecast. If there is no model, or its
    predictions were too far off, it leaves sizing to `up`, `down` and `ahead`.

    It extrapolates a rising load to the time at which the next change could take effect, `settle_s` after this one.
    `gives_way`: which part of the objective it gives up if not all of it can be met. The proposal then says so.
    """

    goal: Goal = Goal()
    up: ScaleUpResolver = ScaleUpResolver()
    down: ScaleDownResolver = ScaleDownResolver()
    ahead: ScaleAheadResolver = ScaleAheadResolver()
    settle_s: float = 0.0
    gives_way: GivesWay = "latency"
    proposers: tuple[Proposer, ...] = ()
    name: str = "retune"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        short = tuple(d for d in diagnoses if d.cause in (UNDER_PROVISIONED, SLO_UNMET))
        is_troubled = any(is_trouble(d) for d in diagnoses)
        rising = () if is_troubled else tuple(d for d in diagnoses if d.cause == RISE_AHEAD)
        idle = () if is_troubled or rising else tuple(d for d in diagnoses if d.cause == OVER_PROVISIONED)
        because = short or rising or idle
        if not because:
            return
        others = any(d.cause in (DATA_SKEW, HASH_IMBALANCE, SLOW_INSTANCE) for d in diagnoses)
        model = None if others else application_model(view)
        if model is None or not self._reliable(view):
            for resolver in (self.up, self.down, self.ahead):
                yield from resolver.resolve(view, diagnoses)
            return
        rate = max(_rate_per_s(view, because) * self._rise_factor(view), expected_per_s(rising))
        the_plan, given_up = self._plan_for(model, Steady(rate, model.variation))
        dearer = the_plan.best.cost - the_plan.present.cost
        if short and not self._recovers(the_plan, short):
            yield from self._more(model, the_plan, short, given_up)
        elif rising and dearer > 0:
            yield _saying(self._change(model, the_plan, rising), given_up)
        elif idle and -dearer >= _LEAST_SAVING and the_plan.chosen is not None:
            yield _saying(self._proposal(model, the_plan, idle, SCALE_DOWN), given_up)

    def _plan_for(self, model: ApplicationModel, coming: Steady) -> tuple[Plan, str]:
        """The plan and, if not all of the objective can be met, what is given up."""

        def without(part: str) -> Plan:
            less = replace(model, objective=replace(model.objective, **{part: None}))
            return plan(less, arrivals=coming, goal=self.goal, proposers=self.proposers)

        full_plan, objective = plan(model, arrivals=coming, goal=self.goal, proposers=self.proposers), model.objective
        if full_plan.chosen is not None:
            return full_plan, ""
        if self.gives_way == "throughput" and objective.throughput_per_s is not None:
            less = without("throughput_per_s")
            if less.rate_per_s < full_plan.rate_per_s:
                return (
                    less,
                    f"the plan covers what arrives instead of {objective.throughput_per_s:,.0f} rows/s",
                )
        if objective.cost_limit is None:
            return full_plan, ""
        dearer = without("cost_limit")
        if self.gives_way == "cost":
            beyond = dearer.best.cost > objective.cost_limit
            return dearer, f"the plan exceeds the cost limit of {objective.cost_limit:g}" if beyond else ""
        enough = f"{dearer.best.cost:g} instances would meet it"
        why = f"the cost limit of {objective.cost_limit:g} does not allow the latency: {enough}"
        return full_plan, why if dearer.chosen else ""

    def _rise_factor(self, view: View) -> float:
        """How many times as much will arrive when the next change takes effect, if the load keeps rising."""
        arrivals = np.array([(d.at_s, d.arrival_per_s) for d in view.history[-LONGEST_MEAN:]]).reshape(-1, 2)
        change_s = max((view.spec(component.scaled_by).apply_s for component in view.topology), default=0.0)
        return min(math.exp(rise_per_s(*arrivals.T) * (_CHANGES_AHEAD * change_s + self.settle_s)), _MOST_RISE)

    def _reliable(self, view: View) -> bool:
        return not any(is_doubted(view, name, self.up.most_error) for name in view.trust)

    def _recovers(self, the_plan: Plan, short: tuple[Diagnosis, ...]) -> bool:
        """Whether the latency is too long only because of a backlog that will be gone before a change could settle."""
        present = the_plan.present
        missed = [each.evidence.find(ObjectiveMissed) if each.cause == SLO_UNMET else None for each in short]
        usual_s = present.predicted.latency_s.get("p95", math.inf)
        late = all(each is not None and each.metric == LATENCY and usual_s <= each.objective for each in missed)
        return late and 0.0 < present.catch_up_s <= self.settle_s

    def _more(
        self, model: ApplicationModel, the_plan: Plan, short: tuple[Diagnosis, ...], given_up: str
    ) -> Iterator[Proposal]:
        if the_plan.patch:
            yield _saying(self._change(model, the_plan, short), given_up)
        if the_plan.chosen is None:
            why = f"no plan meets the objective; the closest one: {the_plan.best.lost}"
            yield alert_about(short[0], f"{why}; {given_up}" if given_up else why)

    def _change(self, model: ApplicationModel, the_plan: Plan, because: tuple[Diagnosis, ...]) -> Proposal:
        only_executors = all(knob.kind == EXECUTORS for knob in the_plan.patch.values)
        grows = the_plan.best.cost > the_plan.present.cost
        return self._proposal(model, the_plan, because, SCALE_UP if only_executors and grows else RETUNE)

    def _proposal(self, model: ApplicationModel, the_plan: Plan, because: tuple[Diagnosis, ...], kind: str) -> Proposal:
        cost_now, cost_then = the_plan.present.cost, the_plan.best.cost
        more = (cost_then - cost_now) / cost_now if cost_now else 0.0
        component = because[0].component or model.topology.names[-1]
        severity = max((d.symptoms[0].severity for d in because if d.symptoms), default=USUAL_SEVERITY)
        return Proposal(
            kind,
            because,
            the_plan.patch,
            component=component,
            prediction=Prediction(_gain(model, the_plan), model.topology.names, _expectation(model, the_plan)),
            benefit=max(severity, LEAST_BENEFIT) if kind != SCALE_DOWN else -more,
            cost=RESOURCE_WEIGHT * max(more, 0.0) + PAUSE_WEIGHT * the_plan.best.pause_s,
        )


def _saying(proposal: Proposal, given_up: str) -> Proposal:
    prediction = proposal.prediction
    if prediction is None or not given_up:
        return proposal
    return replace(proposal, prediction=replace(prediction, text=f"{prediction.text}, {given_up}"))


def _rate_per_s(view: View, because: Sequence[Diagnosis]) -> float:
    """The mean load since it has had its present level, but at least what arrived in each of the last two batches."""
    arrivals = view.flow("arrival_per_s")
    twice = arrivals[np.isfinite(arrivals)][-2:]
    return max(level(arrivals, since_onset(because, LONGEST_MEAN)), float(twice.min()) if len(twice) else 0.0)


def _gain(model: ApplicationModel, the_plan: Plan) -> float:
    """ln(time before ÷ after) of a batch with as many rows as now."""
    performance = model.performance
    if not isinstance(performance, BatchModel):
        before, after = (each.predicted.saturation_per_s.middle for each in (the_plan.present, the_plan.best))
        return math.log(after / before) if before > 0 else 0.0
    now, then = model.setup(model.configuration), model.setup(the_plan.best.configuration)
    rows = max(1.0, model.arrival_per_s * max(now.trigger_s, SHORTEST_TRIGGER_S))
    return math.log(performance.expected_s(rows, now) / performance.expected_s(rows, then))


def _expectation(model: ApplicationModel, the_plan: Plan) -> str:
    """The expected latency, and when the backlog will be processed with this plan and with the next smaller one."""
    best, at_s = the_plan.best, model.at_s
    late_s = best.predicted.latency_s.get("p95", math.nan)
    parts = [f"for {the_plan.rate_per_s:,.0f} rows/s"]
    if math.isfinite(late_s):
        parts.append(f"p95 latency {late_s:.1f} s")
    for knob, spec in model.capabilities.knobs.items():
        if knob.kind == TRIGGER_S and best.configuration.get(knob, 0) > (spec.promise or math.inf):
            parts.append(f"a trigger longer than your {spec.promise:g} s, within your latency objective")
    if best.catch_up_s > 0:
        unit = "executors" if EXECUTORS_KNOB in best.configuration.values else "instances"
        parts.append(f"caught up {_caught_up(at_s, best)} {unit}")
        fewer = [c for c in the_plan.candidates if c.cost < best.cost and math.isfinite(c.catch_up_s)]
        if fewer:
            parts.append(_caught_up(at_s, max(fewer, key=lambda c: (c.cost, -c.done_s))))
    return ", ".join(parts + [f"unknown: {note}" for note in best.predicted.unknown])


def _caught_up(at_s: float, candidate: Candidate) -> str:
    when = f"at {clock(at_s + candidate.done_s)}" if math.isfinite(candidate.done_s) else "never"
    return f"{when} with {candidate.configuration.get(EXECUTORS_KNOB, candidate.cost):g}"
