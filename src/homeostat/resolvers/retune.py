"""The planner in the loop: trigger, rows, partitions and executors chosen together, the cheapest that holds."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from homeostat.core.configuration import EXECUTORS
from homeostat.core.findings import (
    DATA_SKEW,
    HASH_IMBALANCE,
    OVER_PROVISIONED,
    RETUNE,
    RISE_AHEAD,
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
from homeostat.models.application import ApplicationModel, application_model
from homeostat.models.capacity import level
from homeostat.models.planner import Goal, Plan, Proposer, Steady, plan
from homeostat.models.replay import BatchModel
from homeostat.resolvers.ahead import NO_TROUBLE, ScaleAheadResolver, expected_per_s
from homeostat.resolvers.alert import alert_about
from homeostat.resolvers.scale import ScaleDownResolver, ScaleUpResolver
from homeostat.resolvers.sizing import since_onset

_PAUSE_WEIGHT = 1.0 / 3000.0
_LEAST_SAVING = 1.0
_LOOKED_BACK = 60


@dataclass(frozen=True, slots=True)
class RetuneResolver:
    """Plans for the load there is, with its variation, or for a higher one that is forecast; where the model may not
    be relied upon, or is missing, it leaves sizing to `up`, `down` and `ahead`.

    `cost_gives_way`: an objective that cannot be held within the cost limit is held beyond it.
    """

    goal: Goal = Goal()
    up: ScaleUpResolver = ScaleUpResolver()
    down: ScaleDownResolver = ScaleDownResolver()
    ahead: ScaleAheadResolver = ScaleAheadResolver()
    cost_gives_way: bool = False
    proposers: tuple[Proposer, ...] = ()
    name: str = "retune"

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterator[Proposal]:
        short = tuple(d for d in diagnoses if d.cause in (UNDER_PROVISIONED, SLO_UNMET))
        troubled = any(d.cause not in NO_TROUBLE for d in diagnoses)
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
        if self.cost_gives_way:
            model = replace(model, objective=replace(model.objective, cost_limit=None))
        rate = max(_rate_per_s(view, because), expected_per_s(rising))
        made = plan(model, arrivals=Steady(rate, model.variation), goal=self.goal, proposers=self.proposers)
        dearer = made.best.cost - made.present.cost
        if short:
            yield from self._more(model, made, short)
        elif rising and dearer > 0:
            yield self._changed(model, made, rising)
        elif idle and -dearer >= _LEAST_SAVING and made.chosen is not None:
            yield self._proposal(model, made, idle, SCALE_DOWN)

    def _reliable(self, view: View) -> bool:
        return all(trust.error <= self.up.most_error for trust in view.trust.values())

    def _more(self, model: ApplicationModel, made: Plan, short: tuple[Diagnosis, ...]) -> Iterator[Proposal]:
        if made.patch:
            yield self._changed(model, made, short)
        if made.chosen is None:
            yield alert_about(short[0], f"nothing holds the objective; the closest {made.best.lost}")

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
            prediction=Prediction(_gain(model, made), model.topology.names, _told(made)),
            benefit=max(severity, 0.2) if kind != SCALE_DOWN else -more,
            cost=0.02 * max(more, 0.0) + _PAUSE_WEIGHT * made.best.pause_s,
        )


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


def _told(made: Plan) -> str:
    """What is expected, and how long it takes to catch up with it and with what lost to it by a little."""
    best = made.best
    late_s = best.predicted.latency_s.get("p95", math.nan)
    parts = [f"for {made.rate_per_s:,.0f} rows/s"]
    if math.isfinite(late_s):
        parts.append(f"p95 latency {late_s:.1f} s")
    if best.catch_up_s > 0:
        after_s = f"{best.catch_up_s:.0f} s" if math.isfinite(best.catch_up_s) else "no end of time"
        parts.append(f"caught up after {after_s} with {best.cost:g} instances")
    others = sorted(
        {(c.cost, c.catch_up_s) for c in made.candidates if 0 < c.catch_up_s < math.inf and c.cost < best.cost}
    )
    if others:
        parts.append(f"after {others[-1][1]:.0f} s with {others[-1][0]:g}")
    return ", ".join(parts + [f"unknown: {note}" for note in best.predicted.unknown])
