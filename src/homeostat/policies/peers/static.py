"""Static at peak: sized once for the largest expected rate and never changed, as without an autoscaler."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from homeostat.core.errors import ConfigError
from homeostat.core.loop_state import HISTORY_KEPT
from homeostat.core.observation import NAN
from homeostat.core.policy_definition import Policy
from homeostat.core.view import View
from homeostat.policies.peers.ds2 import size
from homeostat.policies.peers.measurements import arrivals, recent, units
from homeostat.policies.peers.rule import Missing, Target, rule_policy
from homeostat.policies.setting_checks import check_settings


@dataclass(frozen=True, slots=True)
class StaticSettings:
    """`peak_per_s` is the rate of all sources together that must fit."""

    peak_per_s: float
    # How long rates are measured before sizing: longer is steadier. As for DS2.
    measure_s: float = 60.0
    # Instances above the need, as a share of it. As for DS2.
    headroom: float = 0.0

    def __post_init__(self) -> None:
        if not math.isfinite(self.peak_per_s):
            raise ConfigError(
                "the policy static does not know the peak load that it must be sized for",
                fix="set peak_per_s to the largest expected rate, or choose another policy",
            )
        if self.peak_per_s == 0:
            raise ConfigError(
                "the policy static is sized for the peak load, which is 0 rows/s here",
                fix="use a load above 0, or choose another policy",
            )
        check_settings(self, positive=("peak_per_s", "measure_s"), not_negative=("headroom",))


@dataclass(frozen=True, slots=True)
class StaticRule:
    settings: StaticSettings
    name: str = "static"

    def targets(self, view: View) -> Sequence[Target] | Missing:
        digests = recent(view, self.settings.measure_s)
        if not digests or _is_sized(view):
            return ()
        arriving = arrivals(view, digests)
        total = sum(arriving.values())
        if not math.isfinite(total):
            return Missing("arrival_per_s")
        shares = {name: per_s / total if total > 0 else 1.0 / len(arriving) for name, per_s in arriving.items()}
        at_peak = {name: share * self.settings.peak_per_s for name, share in shares.items()}
        return size(view, digests, at_peak, self.settings.headroom)


def _is_sized(view: View) -> bool:
    """Whether sizes have changed since the start, or the start is no longer in the history."""
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
    """Static: measures for a moment, sizes for the peak, and never changes anything again."""
    if settings is None:
        settings = StaticSettings(NAN if peak_per_s is None else peak_per_s)
    measure_s = settings.measure_s
    return rule_policy(StaticRule(settings), cadence_s=measure_s, settle_s=0.0, window_s=measure_s)
