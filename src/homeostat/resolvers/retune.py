"""The planner in the loop: trigger, rows, partitions and executors chosen together, the cheapest that holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.actions import RETUNE, SCALE_DOWN, SCALE_UP
from homeostat.core.alerting import alert_about
from homeostat.core.causes import (
    DATA_SKEW,
    HASH_IMBALANCE,
    OVER_PROVISIONED,
    RISE_AHEAD,
    SLO_UNMET,
    SLOW_INSTANCE,
    UNDER_PROVISIONED,
)
from homeostat.core.configuration import EXECUTORS, EXECUTORS_KNOB
from homeostat.core.findings import Diagnosis, Prediction, Proposal
from homeostat.core.objective import GivesWay
from homeostat.core.view import View
from homeostat.models.application_model import ApplicationModel, application_model
from homeostat.models.batch_replay import BatchModel
from homeostat.models.capacity import level
from homeostat.models.planner import Plan, plan
from homeostat.models.planning_question import Candidate, Goal, Proposer, Steady
from homeostat.models.trend import rise_per_s
from homeostat.resolvers.model_trust import doubted
from homeostat.resolvers.scale import ScaleDownResolver, ScaleUpResolver
from homeostat.resolvers.scale_ahead import ScaleAheadResolver, expected_per_s, is_trouble
from homeostat.resolvers.sizing import since_onset
from homeostat.strict.units import clock

_PAUSE_WEIGHT = 1.0 / 3000.0
_LEAST_SAVING = 1.0
_LOOKED_BACK = 60
_MOST_RISE = 1.5


@dataclass(frozen=True, slots=True)
class RetuneResolver:
    """Plans for the load there is, with its variation, or for a higher one that is forecast; where the model may not
    be relied upon, or is missing, it leaves sizing to `up`, `down` and `ahead`.

    A load that rises is planned for as it will be when the next change could take effect: `settle_s` after this one.
    `gives_way`: what of the objective is given up where not all of it can be held, and is then said to be.
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
        troubled = any(is_trouble(d) for d in diagnoses)
        rising = () if troubled else tuple(d for d in diagnoses if d.cause == RISE_AHEAD)
        idle = () if troubled or rising else tuple(d for d in diagnoses if d.cause == OVER_PROVISIONED)
        because = short or rising or idle
        if not because:
            return
        others = any(d.cause in (DATA_SKEW, HASH_IMBALANCE, SLOW_INSTANCE) for d in diagnoses)
        model = None if others else application_model(view)
        if model is None or not self._reliable(view):
            for resolver in (self.up, self.down, self.ahead):
                yield from resolver.resolve(view, diagnoses)
            return
        rate = max(_rate_per_s(view, because) * self._risen(view), expected_per_s(rising))
        made, given_up = self._planned(model, Steady(rate, model.variation))
        dearer = made.best.cost - made.present.cost
        if short:
            yield from self._more(model, made, short, given_up)
        elif rising and dearer > 0:
            yield _saying(self._changed(model, made, rising), given_up)
        elif idle and -dearer >= _LEAST_SAVING and made.chosen is not None:
            yield _saying(self._proposal(model, made, idle, SCALE_DOWN), given_up)

    def _planned(self, model: ApplicationModel, coming: Steady) -> tuple[Plan, str]:
        """The plan and, where not all of the objective can be held, what of it is given up."""

        def without(part: str) -> Plan:
            less = replace(model, objective=replace(model.objective, **{part: None}))
            return plan(less, arrivals=coming, goal=self.goal, proposers=self.proposers)

        made, wanted = plan(model, arrivals=coming, goal=self.goal, proposers=self.proposers), model.objective
        if made.chosen is not None:
            return made, ""
        if self.gives_way == "throughput" and wanted.throughput_per_s is not None:
            less = without("throughput_per_s")
            if less.rate_per_s < made.rate_per_s:
                return less, f"the throughput of {wanted.throughput_per_s:,.0f} rows/s gives way to what arrives"
        if wanted.cost_limit is None:
            return made, ""
        dearer = without("cost_limit")
        if self.gives_way == "cost":
            beyond = dearer.best.cost > wanted.cost_limit
            return dearer, f"the cost limit of {wanted.cost_limit:g} gives way" if beyond else ""
        enough = f"{dearer.best.cost:g} instances would hold it"
        return made, f"latency gives way to the cost limit of {wanted.cost_limit:g}: {enough}" if dearer.chosen else ""

    def _risen(self, view: View) -> float:
        """How many times as much will arrive by then, if it goes on rising."""
        seen = np.array([(d.at_s, d.arrival_per_s) for d in view.history[-_LOOKED_BACK:]]).reshape(-1, 2)
        change_s = max((view.spec(component.scaled_by).apply_s for component in view.topology), default=0.0)
        return min(math.exp(rise_per_s(*seen.T) * (2.0 * change_s + self.settle_s)), _MOST_RISE)

    def _reliable(self, view: View) -> bool:
        return not any(doubted(view, name, self.up.most_error) for name in view.trust)

    def _more(
        self, model: ApplicationModel, made: Plan, short: tuple[Diagnosis, ...], given_up: str
    ) -> Iterator[Proposal]:
        if made.patch:
            yield _saying(self._changed(model, made, short), given_up)
        if made.chosen is None:
            why = f"nothing holds the objective; the closest {made.best.lost}"
            yield alert_about(short[0], f"{why}; {given_up}" if given_up else why)

    def _changed(self, model: ApplicationModel, made: Plan, because: tuple[Diagnosis, ...]) -> Proposal:
        only_executors = all(knob.kind == EXECUTORS for knob in made.patch.values)
        grows = made.best.cost > made.present.cost
        return self._proposal(model, made, because, SCALE_UP if only_executors and grows else RETUNE)

    def _proposal(self, model: ApplicationModel, made: Plan, because: tuple[Diagnosis, ...], kind: str) -> Proposal:
        paid, then = made.present.cost, made.best.cost
        more = (then - paid) / paid if paid else 0.0
        component = because[0].component or model.topology.names[-1]
        severity = max((d.symptoms[0].severity for d in because if d.symptoms), default=0.5)
        return Proposal(
            kind,
            because,
            made.patch,
            component=component,
            prediction=Prediction(_gain(model, made), model.topology.names, _told(model.at_s, made)),
            benefit=max(severity, 0.2) if kind != SCALE_DOWN else -more,
            cost=0.02 * max(more, 0.0) + _PAUSE_WEIGHT * made.best.pause_s,
        )


def _saying(proposal: Proposal, given_up: str) -> Proposal:
    prediction = proposal.prediction
    if prediction is None or not given_up:
        return proposal
    return replace(proposal, prediction=replace(prediction, text=f"{prediction.text}, {given_up}"))


def _rate_per_s(view: View, because: Sequence[Diagnosis]) -> float:
    """The load since it has been what it is now; where it has just risen, at least what came twice in a row."""
    arrivals = view.flow("arrival_per_s")
    twice = arrivals[np.isfinite(arrivals)][-2:]
    return max(level(arrivals, since_onset(because, _LOOKED_BACK)), float(twice.min()) if len(twice) else 0.0)


def _gain(model: ApplicationModel, made: Plan) -> float:
    """ln(time before ÷ after) of a batch with as many rows as now."""
    performance = model.performance
    if not isinstance(performance, BatchModel):
        before, after = (each.predicted.saturation_per_s.middle for each in (made.present, made.best))
        return math.log(after / before) if before > 0 else 0.0
    now, then = model.setup(model.configuration), model.setup(made.best.configuration)
    rows = max(1.0, model.arrival_per_s * max(now.trigger_s, 1.0))
    return math.log(performance.expected_s(rows, now) / performance.expected_s(rows, then))


def _told(at_s: float, made: Plan) -> str:
    """What is expected, and when it will have caught up with it and with the next fewer instances."""
    best = made.best
    late_s = best.predicted.latency_s.get("p95", math.nan)
    parts = [f"for {made.rate_per_s:,.0f} rows/s"]
    if math.isfinite(late_s):
        parts.append(f"p95 latency {late_s:.1f} s")
    if best.catch_up_s > 0:
        unit = "executors" if EXECUTORS_KNOB in best.configuration.values else "instances"
        parts.append(f"caught up {_caught_up(at_s, best)} {unit}")
        fewer = [c for c in made.candidates if c.cost < best.cost and math.isfinite(c.catch_up_s)]
        if fewer:
            parts.append(_caught_up(at_s, max(fewer, key=lambda c: (c.cost, -c.done_s))))
    return ", ".join(parts + [f"unknown: {note}" for note in best.predicted.unknown])


def _caught_up(at_s: float, candidate: Candidate) -> str:
    when = f"at {clock(at_s + candidate.done_s)}" if math.isfinite(candidate.done_s) else "never"
    return f"{when} with {candidate.configuration.get(EXECUTORS_KNOB, candidate.cost):g}"
