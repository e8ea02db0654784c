"""Dynamic allocation of Spark's DStreams (ExecutorAllocationManager): re-implementation of the published rule.

ratio = mean processing time ÷ batch interval. At 0.9 and above it adds max(round(ratio), 1) executors, at 0.3 and
below it kills one. On a dataflow the ratio is the busy share of the busiest instance ÷ (1 − its pressure), which
exceeds 1 under overload as the original does.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies.peers.measurements import measure, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings


@dataclass(frozen=True, slots=True)
class DStreamSettings:
    """Defaults as shipped (spark.streaming.dynamicAllocation.*)."""

    # How often the ratio is checked, and what it is averaged over.
    interval_s: float = 60.0
    # Ratio from which executors are added.
    grow_at: float = 0.9
    # Ratio up to which one executor is removed.
    shrink_at: float = 0.3

    def __post_init__(self) -> None:
        check_settings(self, positive=("interval_s", "grow_at"), not_negative=("shrink_at",))


@dataclass(frozen=True, slots=True)
class DStreamRule:
    settings: DStreamSettings = DStreamSettings()
    name: str = "dstream"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        digests = recent(view, self.settings.interval_s)
        targets = []
        for unit in units(view) if digests else ():
            ratio = measure(view, unit, digests).demand
            if not math.isfinite(ratio):
                return Missing("processing time or trigger", unit.component)
            minimum = math.ceil(view.spec(unit.knob).minimum)
            target = max(minimum, unit.now + self._change(ratio))
            targets.append(Target(unit, target, {"processing time over interval": ratio}))
        return targets

    def _change(self, ratio: float) -> int:
        if ratio >= self.settings.grow_at:
            return max(math.floor(ratio + 0.5), 1)
        return -1 if ratio <= self.settings.shrink_at else 0


def dstream(settings: DStreamSettings | None = None) -> Policy:
    """DStreams: sizes executors by processing time over batch interval."""
    settings = settings or DStreamSettings()
    return rule_policy(DStreamRule(settings), cadence_s=settings.interval_s, settle_s=0.0, window_s=settings.interval_s)
