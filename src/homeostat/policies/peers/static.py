"""Static at peak: what people do without an autoscaler. Sized once for the largest rate expected, never changed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.errors import ConfigError
from homeostat.core.loop_state import HISTORY_KEPT
from homeostat.core.observation import NAN
from homeostat.core.policy import Policy
from homeostat.core.view import View
from homeostat.policies.peers.ds2 import size
from homeostat.policies.peers.measurements import arrivals, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings


@dataclass(frozen=True, slots=True)
class StaticSettings:
    """`peak_per_s` is the rate of all sources together that must fit."""

    peak_per_s: float
    measure_s: float = 60.0
    headroom: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.peak_per_s):
            raise ConfigError(
                "the peak that static is sized for is not known",
                fix="give peak_per_s, the largest rate expected, or choose another policy",
            )
        if self.peak_per_s == 0:
            raise ConfigError(
                "static is sized for the peak of the load, which is 0 rows/s here",
                fix="give it a load above 0, or choose another policy",
            )
        check_settings(self, positive=("peak_per_s", "measure_s"), not_negative=("headroom",))


@dataclass(frozen=True, slots=True)
class StaticRule:
    settings: StaticSettings
    name: str = "static"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        digests = recent(view, self.settings.measure_s)
        if not digests or _sized(view):
            return ()
        seen = arrivals(view, digests)
        total = sum(seen.values())
        if not math.isfinite(total):
            return Missing("arrival_per_s")
        shares = {name: per_s / total if total > 0 else 1.0 / len(seen) for name, per_s in seen.items()}
        at_peak = {name: share * self.settings.peak_per_s for name, share in shares.items()}
        return size(view, digests, at_peak, self.settings.headroom)


def _sized(view: View) -> bool:
    """Whether the sizes have changed since the start, or the start is so long ago that nobody knows."""
    if len(view.history) >= HISTORY_KEPT:
        return True
    for unit in units(view):
        for digest in view.history:
            component = digest.components.get(unit.component)
            then = digest.workers if view.micro_batch else (component.instances if component else unit.now)
            if digest.epoch >= 0 and then != unit.now:
                return True
    return False


def static(settings: StaticSettings | None = None, *, peak_per_s: float | None = None) -> Policy:
    """Static: measured for a moment, sized for the peak, left alone."""
    if settings is None:
        settings = StaticSettings(NAN if peak_per_s is None else peak_per_s)
    measure_s = settings.measure_s
    return rule_policy(StaticRule(settings), cadence_s=measure_s, settle_s=0.0, window_s=measure_s)
