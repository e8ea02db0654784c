"""Our own flavour: the paper's loop with its known flaws repaired. See docs/reference/policies.md for each repair."""

from __future__ import annotations

from dataclasses import replace

from homeostat.core.arbiter import RankedArbiter
from homeostat.core.findings import EXTERNAL, INCONCLUSIVE, MEMORY_PRESSURE, SLO_UNMET, SOURCE_LIMITED, STATE_RISKS
from homeostat.core.guards import (
    Bounds,
    ConfirmShrink,
    CoolDown,
    CostLimit,
    Guard,
    KillSwitch,
    LargestChange,
    OneInFlight,
)
from homeostat.core.policy import Detector, Policy
from homeostat.detectors.admission_bound import AdmissionDetector
from homeostat.detectors.backlog import GrowingBacklogDetector
from homeostat.detectors.forecast_rise import RiseDetector
from homeostat.detectors.idle import IdleDetector
from homeostat.detectors.instance_skew import PendingSkewDetector, RateSkewDetector, SpeedSkewDetector
from homeostat.detectors.needless_spread import EvenKeysDetector
from homeostat.detectors.pressure import PressureDetector
from homeostat.detectors.sensitivity import Sensitivity
from homeostat.detectors.slo_violation import SloDetector
from homeostat.detectors.state_growth import StateGrowthDetector
from homeostat.detectors.state_health import (
    FixedStateDetector,
    LongReplayDetector,
    SnapshotLagDetector,
    SnapshotRepairedDetector,
    StateMemoryDetector,
)
from homeostat.detectors.uneven_partitions import UnevenPartitionsDetector
from homeostat.diagnosers.rise_ahead import AheadDiagnoser
from homeostat.diagnosers.state_risks import StateDiagnoser
from homeostat.diagnosers.weighing import EvidenceDiagnoser
from homeostat.models.forecast import CANDIDATES
from homeostat.models.load_ahead import Forecasts, forecast_of, forecasts_by
from homeostat.models.planning_question import Goal
from homeostat.policies import dotted_paths
from homeostat.resolvers.admit_more import AdmitMoreResolver
from homeostat.resolvers.alert import Alert
from homeostat.resolvers.rebalance import RebalanceResolver
from homeostat.resolvers.replace_worker import ReplaceSlowResolver
from homeostat.resolvers.retune import RetuneResolver
from homeostat.resolvers.scale import ScaleDownResolver, ScaleUpResolver
from homeostat.resolvers.scale_ahead import ScaleAheadResolver
from homeostat.resolvers.sizing import Sizing
from homeostat.resolvers.spread_keys import AdjustSkewResolver, GatherResolver
from homeostat.settings import GuardSettings, Settings

_REGRET_S = 1800.0
_TOLD = frozenset({EXTERNAL, SOURCE_LIMITED, SLO_UNMET, INCONCLUSIVE, MEMORY_PRESSURE, *STATE_RISKS})


def sensitivity(settings: Settings) -> Sensitivity:
    return Sensitivity(**settings.sensitivity.model_dump())


def detectors(settings: Settings) -> tuple[Detector, ...]:
    sure = sensitivity(settings)
    return (
        PressureDetector(sure, 1.5 * settings.loop.catch_up),
        RateSkewDetector(sure),
        PendingSkewDetector(sure),
        SpeedSkewDetector(sure),
        GrowingBacklogDetector(),
        SloDetector(sure),
        IdleDetector(sure),
        AdmissionDetector(sure),
        *([RiseDetector(settings.planning.confidence, _forecasts(settings))] if settings.planning.ahead else []),
        UnevenPartitionsDetector(sure),
        EvenKeysDetector(sure),
        StateGrowthDetector(),
        StateMemoryDetector(),
        LongReplayDetector(),
        SnapshotLagDetector(),
        SnapshotRepairedDetector(),
        FixedStateDetector(),
    )


def _forecasts(settings: Settings) -> Forecasts:
    further = dotted_paths.parts(settings.plugins.forecasters, "forecasters")
    return forecasts_by((*CANDIDATES, *further)) if further else forecast_of


def guards(settings: GuardSettings) -> tuple[Guard, ...]:
    return (
        KillSwitch(),
        OneInFlight(),
        Bounds(),
        ConfirmShrink(settings.confirm),
        LargestChange(settings.largest_change, settings.largest_shrink),
        CostLimit(),
        CoolDown(settings.cooldown, settings.cooldown_shrink),
    )


def provisioning(settings: Settings) -> Policy:
    """Dynamic resource provisioning: no pressure, nothing idle."""
    sizing = Sizing(settings.loop.catch_up)
    return Policy(
        name="provisioning",
        detectors=detectors(settings),
        diagnosers=(EvidenceDiagnoser(), AheadDiagnoser(settings.planning.confidence), StateDiagnoser()),
        resolvers=(
            ReplaceSlowResolver(),
            AdjustSkewResolver(),
            GatherResolver(),
            RebalanceResolver(),
            AdmitMoreResolver(),
            ScaleUpResolver(sizing, settings.planning.largest_error),
            ScaleDownResolver(sizing, settings.planning.largest_error),
            ScaleAheadResolver(sizing, settings.planning.largest_error),
            Alert(_TOLD),
        ),
        cadence_s=settings.loop.cadence,
        settle_s=settings.loop.settle,
        window_s=settings.loop.window,
        least_observations=3,
        regret_s=_REGRET_S,
        arbiter=RankedArbiter(settings.loop.act_above, settings.loop.patience),
        guards=guards(settings.guards),
    )


def latency(settings: Settings) -> Policy:
    """Latency or lag SLO: trigger, rows, partitions and executors planned together by the model, for a throughput and
    within a cost limit if there are such. Where they cannot all be held, one of them gives way, as it is set."""
    made = provisioning(settings)
    sizing, planning = Sizing(settings.loop.catch_up), settings.planning
    limited = planning.gives_way != "cost"
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
        made,
        name="latency",
        resolvers=(
            ReplaceSlowResolver(),
            AdjustSkewResolver(),
            GatherResolver(),
            RebalanceResolver(),
            AdmitMoreResolver(),
            retune,
            Alert(_TOLD),
        ),
        guards=tuple(guard for guard in made.guards if limited or not isinstance(guard, CostLimit)),
    )


def throughput(settings: Settings) -> Policy:
    """Throughput SLO: the sources and all stages sized for it in one plan, and an alert when outside causes keep it
    out of reach. The provisioning parts heal and give back, but never below what the objective needs."""
    return replace(provisioning(settings), name="throughput")
