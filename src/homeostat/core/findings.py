"""What each stage of the loop yields: symptoms, diagnoses, proposals, outcomes; and the record of them all."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from homeostat.core.configuration import Patch

Evidence = Mapping[str, float | str]

# Symptoms
PRESSURE = "pressure"
PENDING_SKEW = "pending-skew"
RATE_SKEW = "rate-skew"
UNEVEN = "uneven-partitions"
GROWING_BACKLOG = "growing-backlog"
SPEED_SKEW = "speed-skew"
SLO_VIOLATION = "slo-violation"
IDLE = "idle"
ADMISSION_BOUND = "admission-bound"
FORECAST_RISE = "forecast-rise"
UNKNOWN = "unknown"
EVEN_KEYS = "even-keys"
STATE_GROWS = "state-grows"
STATE_MEMORY = "state-memory"
LONG_REPLAY = "long-replay"
SNAPSHOT_LAG = "snapshot-lag"
SNAPSHOT_REPAIRED = "snapshot-repaired"
FIXED_STATE = "fixed-state"
STATE_SYMPTOMS = frozenset({STATE_GROWS, STATE_MEMORY, LONG_REPLAY, SNAPSHOT_LAG, SNAPSHOT_REPAIRED, FIXED_STATE})

# Causes
UNDER_PROVISIONED = "under-provisioned"
OVER_PROVISIONED = "over-provisioned"
SLOW_INSTANCE = "slow-instance"
DATA_SKEW = "data-skew"
HASH_IMBALANCE = "hash-imbalance"
SOURCE_SKEW = "source-skew"
NEEDLESS_SPREAD = "needless-spread"
SLO_UNMET = "slo-unmet"
SOURCE_LIMITED = "source-limited"
EXTERNAL = "external-bound"
ADMISSION_LIMITED = "admission-limited"
RISE_AHEAD = "rise-ahead"
# For how long after an action ahead of it could have taken effect a rise is looked for.
RISE_SEEN_S = 180.0
INCONCLUSIVE = "inconclusive"
UNBOUNDED_STATE = "unbounded-state"
MEMORY_PRESSURE = "memory-pressure"
SLOW_RECOVERY = "slow-recovery"
LATE_SNAPSHOTS = "late-snapshots"
DAMAGED_SNAPSHOTS = "damaged-snapshots"
UNSCALABLE_STATE = "unscalable-state"
# What is wrong with the state and not with the speed: it is told, and keeps nothing else from being done.
STATE_RISKS = frozenset({UNBOUNDED_STATE, SLOW_RECOVERY, LATE_SNAPSHOTS, DAMAGED_SNAPSHOTS, UNSCALABLE_STATE})

# Kinds of action
SCALE_UP = "scale-up"
SCALE_DOWN = "scale-down"
SCALE_SOURCE = "scale-source"
RETUNE = "retune"
REPLACE = "replace"
ADMIT_MORE = "admit-more"
ADJUST_SKEW = "adjust-skew"
GATHER = "gather"
ALERT = "alert"
REVERT = "revert"
BY_HAND = "by-hand"


@dataclass(frozen=True, slots=True)
class Symptom:
    """Something a detector saw. `component` is empty where it concerns the whole application.

    `kind` UNKNOWN says that the detector named in `evidence["detector"]` lacks a metric: not a problem, but
    never health either.
    """

    kind: str
    component: str = ""
    severity: float = 0.0
    evidence: Evidence = field(default_factory=dict)
    instances: tuple[int, ...] = ()
    workers: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Diagnosis:
    """A cause, how probable it is, and the symptoms it was read from."""

    cause: str
    component: str = ""
    probability: float = 1.0
    evidence: Evidence = field(default_factory=dict)
    symptoms: tuple[Symptom, ...] = ()
    instances: tuple[int, ...] = ()
    workers: tuple[str, ...] = ()
    id: str = ""


@dataclass(frozen=True, slots=True)
class Prediction:
    """What an action will do. `gain` is ln(time before ÷ after) of the whole application at equal load.

    `touched` are the components it changes: if others change their speed too, something else happened.
    """

    gain: float
    touched: tuple[str, ...] = ()
    text: str = ""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A patch that a resolver would like to see applied, and why.

    `benefit` and `cost` are in the same unit: the share of the load won, and the share of the resources
    (and of the pause) it takes. An alert is a proposal with a message and no patch.
    """

    kind: str
    because: tuple[Diagnosis, ...]
    patch: Patch = field(default_factory=Patch)
    component: str = ""
    prediction: Prediction | None = None
    benefit: float = 1.0
    cost: float = 0.0
    reversible: bool = True
    message: str = ""
    id: str = ""

    @property
    def cause(self) -> str:
        return self.because[0].cause if self.because else ""

    @property
    def probability(self) -> float:
        return max((diagnosis.probability for diagnosis in self.because), default=0.0)


Verdict = Literal["helped", "harmful", "failed", "unclear", "untestable", "confounded", "shrunk", "superseded"]


@dataclass(frozen=True, slots=True)
class Outcome:
    """How an action turned out, against its own prediction."""

    verdict: Verdict
    observed_gain: float = float("nan")
    predicted_gain: float = float("nan")
    standard_error: float = float("nan")
    before: int = 0
    after: int = 0
    reason: str = ""
