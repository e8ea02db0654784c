"""The default policies: the paper's loop with its flaws repaired. docs/reference/policies.md lists the repairs."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.arbiter import RankedArbiter
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.guards import (
    Bounds,
    ConfirmShrink,
    CoolDown,
    CostLimit,
    Guard,
    KillSwitch,
    LargestChange,
    MostReplaced,
    OneInFlight,
    guard_chain,
)
from homeostat.core.policy_definition import Detector, Policy
from homeostat.detectors.admission_bound import AdmissionDetector
from homeostat.detectors.backlog import GrowingBacklogDetector
from homeostat.detectors.disk_space import DiskSpaceDetector
from homeostat.detectors.failed_work import FailedAttemptsDetector, LostWorkersDetector
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.detectors.idle import IdleDetector
from homeostat.detectors.instance_skew import PendingSkewDetector, RateSkewDetector, SpeedSkewDetector
from homeostat.detectors.lost_time import LostTimeDetector
from homeostat.detectors.needless_spread import EvenKeysDetector
from homeostat.detectors.pressure import PressureDetector
from homeostat.detectors.savepoint_count import SavepointDetector
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.detectors.slo_violation import SloDetector
from homeostat.detectors.source_trouble import SourceTroubleDetector
from homeostat.detectors.state_growth import StateGrowthDetector
from homeostat.detectors.state_health import (
    FixedStateDetector,
    LongReplayDetector,
    SnapshotLagDetector,
    SnapshotRepairedDetector,
    StateMemoryDetector,
)
from homeostat.detectors.still_watermark import StillWatermarkDetector
from homeostat.detectors.uneven_partitions import UnevenPartitionsDetector
from homeostat.diagnosers.lost_time import LostTimeDiagnoser
from homeostat.diagnosers.rise_ahead import AheadDiagnoser
from homeostat.diagnosers.source_trouble import SourceDiagnoser
from homeostat.diagnosers.state_risks import StateDiagnoser
from homeostat.diagnosers.strengths import strengths_in_use
from homeostat.diagnosers.weighing import EvidenceDiagnoser
from homeostat.models.forecast import CANDIDATES
from homeostat.models.load_ahead import Forecasts, forecast_of, forecasts_by
from homeostat.models.planning_question import Goal
from homeostat.policies import dotted_paths
from homeostat.resolvers.admit_more import AdmitMoreResolver
from homeostat.resolvers.alert import Alert
from homeostat.resolvers.apply_remedy import RemedyResolver
from homeostat.resolvers.one_plan import OnePlan
from homeostat.resolvers.rebalance import RebalanceResolver
from homeostat.resolvers.replace_worker import ReplaceSlowResolver
from homeostat.resolvers.retune import RetuneResolver
from homeostat.resolvers.scale import ScaleDownResolver, ScaleUpResolver
from homeostat.resolvers.scale_ahead import ScaleAheadResolver
from homeostat.resolvers.scaling_veto import ScalingVeto
from homeostat.resolvers.sizing import Sizing
from homeostat.resolvers.spread_keys import AdjustSkewResolver, GatherResolver
from homeostat.settings import GuardSettings, Settings

# Seconds after an action in which problems count against it: longer blames it for later problems. A choice.
_REGRET_S = 1800.0
# Batches that detectors see even if those take longer than the window. Fewer would leave long batches without anything
# to compare with. As many as failures are looked for in. A choice.
_LEAST_WINDOW = 20


def sensitivity(settings: Settings) -> Sensitivity:
    return Sensitivity(**settings.sensitivity.model_dump())


def detectors(settings: Settings) -> tuple[Detector, ...]:
    limits = sensitivity(settings)
    return (
        PressureDetector(limits, settings.loop.catch_up),
        RateSkewDetector(limits),
        PendingSkewDetector(limits),
        SpeedSkewDetector(limits),
        GrowingBacklogDetector(),
        SloDetector(limits),
        IdleDetector(limits),
        AdmissionDetector(limits),
        *([RiseDetector(settings.planning.confidence, _forecasts(settings))] if settings.planning.ahead else []),
        UnevenPartitionsDetector(limits),
        EvenKeysDetector(limits),
        StateGrowthDetector(),
        StateMemoryDetector(),
        LongReplayDetector(),
        SnapshotLagDetector(),
        SnapshotRepairedDetector(),
        FixedStateDetector(),
        DiskSpaceDetector(settings.space.least_free, settings.space.full_within),
        LostTimeDetector(),
        FailedAttemptsDetector(),
        LostWorkersDetector(),
        StillWatermarkDetector(),
        SourceTroubleDetector(),
        SavepointDetector(settings.space.most_savepoints, settings.space.savepoints),
    )


def _forecasts(settings: Settings) -> Forecasts:
    plugins = dotted_paths.parts(settings.plugins.forecasters, "forecasters")
    return forecasts_by((*CANDIDATES, *plugins)) if plugins else forecast_of


def guards(settings: GuardSettings) -> tuple[Guard, ...]:
    return guard_chain(
        KillSwitch(),
        OneInFlight(may_overtake=True),
        Bounds(),
        MostReplaced(settings.most_replaced),
        ConfirmShrink(settings.confirm),
        LargestChange(settings.largest_change, settings.largest_shrink),
        CostLimit(),
        CoolDown(settings.cooldown, settings.cooldown_shrink, by_cause=True),
        ScalingVeto(),
    )


def provisioning(settings: Settings) -> Policy:
    """Dynamic resource provisioning: no pressure, nothing idle."""
    sizing = Sizing(settings.loop.catch_up)
    return Policy(
        name="provisioning",
        detectors=detectors(settings),
        diagnosers=(
            EvidenceDiagnoser(),
            LostTimeDiagnoser(strengths=strengths_in_use(settings.plugins.strengths, dotted_paths.cause_model)),
            AheadDiagnoser(settings.planning.confidence),
            StateDiagnoser(),
            SourceDiagnoser(),
        ),
        resolvers=(
            ReplaceSlowResolver(),
            AdjustSkewResolver(),
            GatherResolver(),
            RebalanceResolver(),
            AdmitMoreResolver(),
            RemedyResolver(),
            ScaleUpResolver(sizing, settings.planning.largest_error),
            ScaleDownResolver(sizing, settings.planning.largest_error),
            ScaleAheadResolver(sizing, settings.planning.largest_error),
            Alert(declared_only=True),
        ),
        cadence_s=settings.loop.cadence,
        settle_s=settings.loop.settle,
        window_s=settings.loop.window,
        least_window=_LEAST_WINDOW,
        least_observations=LEAST_OBSERVATIONS,
        regret_s=_REGRET_S,
        violation_cost=settings.planning.violation_cost,
        arbiter=RankedArbiter(settings.loop.act_above, settings.loop.patience, OnePlan()),
        guards=guards(settings.guards),
    )


def latency(settings: Settings) -> Policy:
    """Latency or lag SLO: the model plans trigger, row limit, partitions and executors together.

    An objective for throughput and a cost limit are part of the plan. If they cannot all be met, the setting
    `gives_way` says which one yields.
    """
    base = provisioning(settings)
    sizing, planning = Sizing(settings.loop.catch_up), settings.planning
    has_cost_limit = planning.gives_way != "cost"
    retune = RetuneResolver(
        Goal(planning.confidence, planning.horizon, settings.loop.catch_up),
        ScaleUpResolver(sizing, planning.largest_error),
        ScaleDownResolver(sizing, planning.largest_error),
        ScaleAheadResolver(sizing, planning.largest_error),
        settle_s=settings.loop.settle,
        gives_way=planning.gives_way,
        proposers=dotted_paths.parts(settings.plugins.proposers, "proposers"),
    )
    return replace(
        base,
        name="latency",
        resolvers=(
            ReplaceSlowResolver(),
            AdjustSkewResolver(),
            GatherResolver(),
            RebalanceResolver(),
            AdmitMoreResolver(),
            RemedyResolver(plans_trigger=True),
            retune,
            Alert(declared_only=True),
        ),
        guards=tuple(guard for guard in base.guards if has_cost_limit or not isinstance(guard, CostLimit)),
    )


def throughput(settings: Settings) -> Policy:
    """Throughput SLO: one plan sizes the sources and all stages for it.

    An alert says when an outside cause keeps it out of reach. The parts of provisioning heal and scale down, but never
    below what the objective needs.
    """
    return replace(provisioning(settings), name="throughput")
