"""Heron's health manager as shipped (apache/incubator-heron): re-implementation of its auto-scaling policy.

The paper's detectors and table, but the pressure of a stage is the sum over its instances, clamped to 999 ms/s, and
all that works is scaling up: no scale-down, no replacement, no skew adjustment, no evaluation, no blacklist.
Two things are not copied: its window reaches back to before its own action (ours start there), and two components
under pressure at once kill its loop (here the most downstream one is scaled).
"""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.arbiter import InOrderArbiter
from homeostat.core.policy import Policy
from homeostat.detectors.paper_thresholds import PendingSkewDetector, PressureDetector, RateSkewDetector
from homeostat.diagnosers.paper_table import PaperTable
from homeostat.policies.peers.rule import GUARDS, NoJudge, NoMemory
from homeostat.policies.setting_checks import check_settings
from homeostat.resolvers.paper_actions import ScaleUp


@dataclass(frozen=True, slots=True)
class HeronSettings:
    cadence_s: float = 60.0
    settle_s: float = 180.0
    window_s: float = 300.0
    fence: float = 4.0
    noise_filter: float = 0.02
    rate_skew: float = 1.5
    queue_skew: float = 20.0

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("cadence_s", "settle_s", "window_s", "fence"),
            not_negative=("noise_filter",),
            at_least_one=("rate_skew", "queue_skew"),
        )


def heron(settings: HeronSettings | None = None) -> Policy:
    """Heron: sum-and-clamp scale-up of the most downstream component under pressure."""
    settings = settings or HeronSettings()
    least_s = min(settings.settle_s, settings.window_s)
    return Policy(
        name="heron",
        detectors=(
            PressureDetector(settings.noise_filter, least_s),
            PendingSkewDetector(settings.queue_skew, settings.rate_skew, least_s),
            RateSkewDetector(settings.rate_skew, least_s),
        ),
        diagnosers=(PaperTable(),),
        resolvers=(ScaleUp(settings.fence, stage="sum"),),
        cadence_s=settings.cadence_s,
        settle_s=settings.settle_s,
        window_s=settings.window_s,
        arbiter=InOrderArbiter(),
        guards=GUARDS,
        memory=NoMemory(),
        judge=NoJudge(),
    )
