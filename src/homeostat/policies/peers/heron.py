"""Heron's health manager as shipped (apache/incubator-heron): re-implementation of its auto-scaling policy.

It has the paper's detectors and table, but the pressure of a stage is the sum over its instances, clamped to 999 ms/s.
Only scaling up works: there is no scale-down, no replacement, no skew adjustment, no evaluation and no blacklist.
Two flaws are not copied. Its window reaches back before its own action; ours start there. Two components under pressure
at once kill its loop; here the most downstream one is scaled.
"""

from __future__ import annotations

from dataclasses import dataclass

from homeostat.core.arbiter import InOrderArbiter
from homeostat.core.policy_definition import Policy
from homeostat.detectors.paper_thresholds import PendingSkewDetector, PressureDetector, RateSkewDetector
from homeostat.diagnosers.paper_table import PaperTable
from homeostat.policies.paper import PaperSettings
from homeostat.policies.peers.rule import GUARDS, NoJudge, NoMemory
from homeostat.policies.setting_checks import check_settings
from homeostat.resolvers.paper_actions import ScaleUp

PAPER = PaperSettings()


@dataclass(frozen=True, slots=True)
class HeronSettings:
    """Defaults as shipped. `PaperSettings` describes each; only the window differs."""

    cadence_s: float = PAPER.cadence_s
    settle_s: float = PAPER.settle_s
    # What metrics are averaged over: longer than the settling time, which is the original's flaw.
    window_s: float = 300.0
    fence: float = PAPER.fence
    noise_filter: float = PAPER.noise_filter
    rate_skew: float = PAPER.rate_skew
    queue_skew: float = PAPER.queue_skew

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("cadence_s", "settle_s", "window_s", "fence"),
            not_negative=("noise_filter",),
            at_least_one=("rate_skew", "queue_skew"),
        )


def heron(settings: HeronSettings | None = None) -> Policy:
    """Heron: scales up the most downstream component under pressure, by the sum of its pressure, clamped."""
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
