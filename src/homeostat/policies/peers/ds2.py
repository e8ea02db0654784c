"""DS2 (Kalavri et al., "Three steps is all you need", OSDI 2018): re-implementation of the published rule.

In topological order p*ᵢ = Σ output of the upstream operators at their optimum ÷ (true rate of one instance). The
unrounded p* is propagated. ⌈p*·(1 + headroom)⌉ instances are deployed, for all operators at once.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from homeostat.core.digest import Digest
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies.peers.measurements import arrivals, demands, measure, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings

_ROUNDING = 1e-6


@dataclass(frozen=True, slots=True)
class Ds2Settings:
    """`activation_intervals` in a row must require a change; the largest of them is deployed."""

    # How long rates are measured for a decision: as in the paper's comparison with Dhalion.
    interval_s: float = 60.0
    # More intervals resist noise and react later. The paper's experiments need one.
    activation_intervals: int = 1
    # Instances above the optimum, as a share of it: 0 gives the paper's known minimum.
    headroom: float = 0.0
    # Smaller changes are not deployed: 1 deploys all of them.
    min_change: int = 1
    # Fewer instances than this less are not worth a deployment. DS2's manager has 2.
    min_shrink: int = 1
    # Intervals that are ignored after a deployment. DS2's configuration has 2, of 10 s each.
    warm_up_intervals: int = 0
    # If the model asks for no more instances and yet a source processes this many times less than arrives, all
    # operators get that many times as many. Off in DS2, too.
    target_rate_ratio: float = math.inf

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("interval_s",),
            not_negative=("headroom", "warm_up_intervals"),
            at_least_one=("activation_intervals", "min_change", "min_shrink"),
        )


@dataclass(frozen=True, slots=True)
class Ds2Rule:
    settings: Ds2Settings = Ds2Settings()
    name: str = "ds2"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        settings = self.settings
        if settings.warm_up_intervals and not recent(view, settings.interval_s * self._intervals):
            return ()
        digests = recent(view, settings.interval_s * settings.activation_intervals)
        plans: list[Sequence[Target]] = []
        for number in range(settings.activation_intervals if digests else 0):
            end_s = view.now_s - number * settings.interval_s
            part = [d for d in digests if end_s - settings.interval_s < d.at_s <= end_s]
            plan = size(view, part, arrivals(view, part), settings.headroom)
            if isinstance(plan, Missing):
                return plan
            plans.append(corrected(plan, _rate_ratio(part), settings.target_rate_ratio))
        return [target for same in zip(*plans, strict=True) if (target := self._agreement(same)) is not None]

    @property
    def _intervals(self) -> int:
        return self.settings.warm_up_intervals + self.settings.activation_intervals

    def _agreement(self, same: Sequence[Target]) -> Target | None:
        largest = max(same, key=lambda target: target.size)
        now = largest.unit.now
        one_way = all(t.size > now for t in same) or all(t.size < now for t in same)
        least = (
            self.settings.min_change if largest.size > now else max(self.settings.min_change, self.settings.min_shrink)
        )
        return largest if one_way and abs(largest.size - now) >= least else None


def corrected(plan: Sequence[Target], ratio: float, threshold: float) -> Sequence[Target]:
    """The plan, or its last correction: all sizes times what the sources lack, if nothing is to grow and they lag."""
    if not ratio > threshold or any(target.size > target.unit.now for target in plan):
        return plan
    return [target._replace(size=math.ceil(target.size * ratio - _ROUNDING)) for target in plan]


def _rate_ratio(digests: Sequence[Digest]) -> float:
    """How many times what was processed arrived; NaN if that is unknown."""
    known_digests = [d for d in digests if math.isfinite(d.rows) and math.isfinite(d.arrival_per_s)]
    processed = sum(d.rows for d in known_digests)
    return sum(d.arrival_per_s * d.span_s for d in known_digests) / processed if processed > 0 else math.nan


def size(
    view: View, digests: Sequence[Digest], at_sources: Mapping[str, float], headroom: float
) -> Sequence[Target] | Missing:
    """Return the smallest parallelism that can process these rates at the sources."""
    for source, per_s in at_sources.items():
        if not math.isfinite(per_s):
            return Missing("arrival_per_s", source)
    measured = {unit: measure(view, unit, digests) for unit in units(view)}
    arriving_per_s = demands(view, {unit.component: load for unit, load in measured.items()}, at_sources)
    targets = []
    for unit, load in measured.items():
        demand = arriving_per_s[unit.component]
        if not math.isfinite(demand) or (demand > 0 and not math.isfinite(load.rate_per_s)):
            return Missing("rows or useful time", unit.component)
        needed_instances = demand / load.rate_per_s if demand > 0 else 0.0
        evidence = {"demand_per_s": demand, "true rate_per_s": load.rate_per_s, "optimum": needed_instances}
        whole = max(1, math.ceil(needed_instances * (1.0 + headroom) - _ROUNDING))
        minimum = math.ceil(view.spec(unit.knob).minimum)
        targets.append(Target(unit, max(whole, minimum), evidence))
    return targets


def ds2(settings: Ds2Settings | None = None) -> Policy:
    """DS2: sizes all operators at once from true rates."""
    settings = settings or Ds2Settings()
    span_s = settings.interval_s * (settings.warm_up_intervals + settings.activation_intervals)
    return rule_policy(Ds2Rule(settings), cadence_s=settings.interval_s, settle_s=0.0, window_s=span_s)
