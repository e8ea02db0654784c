"""The policies of the Dhalion paper, as published: fixed thresholds, one action at a time, a blacklist."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.arbiter import InOrderArbiter
from homeostat.core.causes import INCONCLUSIVE, SOURCE_LIMITED
from homeostat.core.digest import Digest
from homeostat.core.findings import Outcome
from homeostat.core.guards import Bounds, CoolDown, CostLimit, KillSwitch, MostReplaced, OneInFlight, guard_chain
from homeostat.core.memory import Blacklist
from homeostat.core.observation import NAN
from homeostat.core.policy_definition import Detector, Policy, Resolver
from homeostat.core.trial import Trial
from homeostat.detectors.paper_thresholds import (
    GROWING_QUEUE_PER_S,
    IDLE_PENDING_S,
    QUEUE_SKEW,
    RATE_SKEW_RATIO,
    GrowingQueueDetector,
    IdleDetector,
    PendingSkewDetector,
    PressureDetector,
    RateSkewDetector,
    SloDetector,
)
from homeostat.detectors.sensitivity import NOISE_FILTER, SLO_TOLERANCE
from homeostat.detectors.window_means import batch_pressure
from homeostat.diagnosers.paper_table import NextReading, PaperTable
from homeostat.policies.setting_checks import check_settings
from homeostat.resolvers.alert import Alert
from homeostat.resolvers.paper_actions import (
    AdjustSkew,
    InDiagnosisOrder,
    ReplaceSlow,
    ScaleDown,
    ScaleUp,
    SourceScaleUp,
)

# Share of a window that must have been observed before its means count: less lets the first seconds decide. A choice.
_LEAST_OF_WINDOW = 0.8

# The largest growth in one step that the paper's policies allow. Heron.
FENCE = 4.0


@dataclass(frozen=True, slots=True)
class PaperSettings:
    """Thresholds as in the paper and in Heron; the comments say which are ours.

    Heron ships a window of 300 s with a settling time of 180 s and so decides on data from before its own action.
    That flaw is not copied.
    """

    # How often the loop decides: shorter reacts sooner on less data. Heron.
    cadence_s: float = 60.0
    # How long an action is left alone before it is judged: longer is surer. Heron.
    settle_s: float = 180.0
    # What metrics are averaged over: longer is steadier. Ours: shorter than the settling time, unlike Heron's 300 s.
    window_s: float = 120.0
    # The largest growth in one step, as a multiple of what is there: a wrong reading does less harm. Heron.
    fence: float = FENCE
    # Back-pressure below this share of the time is noise. Heron: 20 ms per second.
    noise_filter: float = NOISE_FILTER
    # Largest over smallest rate of the instances from which they are skewed. Heron.
    rate_skew: float = RATE_SKEW_RATIO
    # Largest over smallest queue of the instances from which they are skewed. Heron.
    queue_skew: float = QUEUE_SKEW
    # A queue that grows by more than this many rows per second is growing. Heron.
    growing_queue_per_s: float = GROWING_QUEUE_PER_S
    # A component whose queue holds no more than this many seconds of work is idle. Ours: the paper says about 0.
    idle_pending_s: float = IDLE_PENDING_S
    # Share of the instances that remains after scaling down: smaller saves sooner and overshoots more. Ours: the paper
    # says "a configured factor".
    shrink_factor: float = 0.8
    # An action is blacklisted when more than this share of its uses did not help. Ours: the paper gives no number.
    blacklist_ratio: float = 0.5
    # How far throughput may stay below the objective before it counts as missed. Ours.
    slo_tolerance: float = SLO_TOLERANCE

    def __post_init__(self) -> None:
        check_settings(
            self,
            positive=("cadence_s", "settle_s", "window_s", "fence", "growing_queue_per_s"),
            not_negative=("noise_filter", "idle_pending_s", "blacklist_ratio", "slo_tolerance"),
            shares=("shrink_factor",),
            at_least_one=("rate_skew", "queue_skew"),
        )


@dataclass(frozen=True, slots=True)
class PaperJudge:
    """Judges an action by pressure: it helped if the pressure fell by a tenth once the topology has settled.

    If another component has come under pressure instead, the bottleneck has moved there and holds this one back, which
    proves nothing about the action. Scaling down failed if trouble followed. As in the paper, nothing else that
    happened meanwhile is considered.
    """

    # The share by which pressure must fall: a smaller one counts noise as success. Ours: the paper has no number.
    least_fall: float = 0.1
    noise_filter: float = NOISE_FILTER
    window_s: float = 120.0

    def judge(self, trial: Trial) -> Outcome | None:
        if trial.elapsed_s < trial.settle_s:
            return None
        if trial.prediction.gain < 0:
            if trial.unhealthy:
                return Outcome("harmful", reason=f"problem after scaling down: {trial.unhealthy}")
            return Outcome("shrunk", reason="no back-pressure followed")
        before, after = self._at(trial, trial.before), self._at(trial, trial.after)
        if not (math.isfinite(before) and math.isfinite(after)):
            return Outcome("unclear", reason="the pressure is unknown")
        if after <= max(before * (1.0 - self.least_fall), self.noise_filter):
            return Outcome("helped", reason=f"pressure fell from {before:.2f} to {after:.2f}")
        movement = self._movement(trial)
        if movement:
            return Outcome("unclear", reason=f"the bottleneck moved to {movement}, which holds {trial.component} back")
        return Outcome("failed", reason=f"pressure was {before:.2f} and is now {after:.2f}")

    def _at(self, trial: Trial, digests: tuple[Digest, ...]) -> float:
        recent = self._recent(digests)
        return batch_pressure(recent) if trial.micro_batch else _mean_pressure(recent, trial.component)

    def _movement(self, trial: Trial) -> str:
        names = trial.after[-1].components if trial.after and not trial.micro_batch else ()
        for name in names:
            before = _mean_pressure(self._recent(trial.before), name)
            after = _mean_pressure(self._recent(trial.after), name)
            if name != trial.component and before <= self.noise_filter < after:
                return name
        return ""

    def _recent(self, digests: tuple[Digest, ...]) -> list[Digest]:
        return [d for d in digests if d.at_s > digests[-1].at_s - self.window_s]


def provisioning_paper(settings: PaperSettings | None = None) -> Policy:
    """Dynamic resource provisioning: no back-pressure, and nothing idle."""
    settings = settings or PaperSettings()
    idle = IdleDetector(settings.idle_pending_s, settings.noise_filter, _least_s(settings))
    return _invasive("provisioning.paper", settings, idle, ScaleDown(settings.shrink_factor))


def throughput_paper(settings: PaperSettings | None = None) -> Policy:
    """Throughput SLO: scales the sources first, then whatever comes under pressure; an alert when it is out of reach.

    It never scales down, and neither does the paper's.
    """
    settings = settings or PaperSettings()
    slo = SloDetector(settings.slo_tolerance, _least_s(settings))
    return _invasive("throughput.paper", settings, slo, SourceScaleUp())


def alert(settings: PaperSettings | None = None) -> Policy:
    """Never acts: the same detectors and diagnosers, and an alert for every cause."""
    settings = settings or PaperSettings()
    idle = IdleDetector(settings.idle_pending_s, settings.noise_filter, _least_s(settings))
    slo = SloDetector(settings.slo_tolerance, _least_s(settings))
    return Policy(
        name="alert",
        detectors=(*_detectors(settings), idle, slo),
        diagnosers=(PaperTable(settings.slo_tolerance),),
        resolvers=(Alert(),),
        cadence_s=settings.cadence_s,
        settle_s=settings.settle_s,
        window_s=settings.window_s,
        arbiter=InOrderArbiter(),
        guards=guard_chain(KillSwitch()),
    )


def _invasive(name: str, settings: PaperSettings, detector: Detector, resolver: Resolver) -> Policy:
    healing = (ReplaceSlow(), AdjustSkew(), ScaleUp(settings.fence))
    return Policy(
        name=name,
        detectors=(*_detectors(settings), detector),
        diagnosers=(PaperTable(settings.slo_tolerance), NextReading()),
        resolvers=(InDiagnosisOrder((*healing, resolver)), Alert(frozenset({INCONCLUSIVE, SOURCE_LIMITED}))),
        cadence_s=settings.cadence_s,
        settle_s=settings.settle_s,
        window_s=settings.window_s,
        arbiter=InOrderArbiter(),
        guards=guard_chain(
            KillSwitch(),
            OneInFlight(),
            Bounds(),
            MostReplaced(),
            CostLimit(),
            CoolDown(grow_s=settings.settle_s, shrink_s=settings.settle_s),
        ),
        memory=Blacklist(settings.blacklist_ratio),
        judge=PaperJudge(noise_filter=settings.noise_filter, window_s=settings.window_s),
    )


def _detectors(settings: PaperSettings) -> tuple[Detector, ...]:
    least_s = _least_s(settings)
    return (
        PressureDetector(settings.noise_filter, least_s),
        PendingSkewDetector(settings.queue_skew, settings.rate_skew, least_s),
        RateSkewDetector(settings.rate_skew, least_s),
        GrowingQueueDetector(settings.growing_queue_per_s, least_s),
    )


def _least_s(settings: PaperSettings) -> float:
    """Seconds of a window that must have been observed before its means count."""
    return _LEAST_OF_WINDOW * settings.window_s


def _mean_pressure(digests: Sequence[Digest], component: str) -> float:
    values = [d.components[component].pressured for d in digests if component in d.components]
    finite = [value for value in values if math.isfinite(value)]
    return float(np.mean(finite)) if finite else NAN
