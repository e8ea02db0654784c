"""The plug-ins of the loop, and the policy that combines them. Any object with these methods is a plug-in."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from homeostat.core.arbiter import Arbiter, RankedArbiter
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.guards import DEFAULT_GUARDS, Guard
from homeostat.core.memory import DecayingMemory, MemoryRule
from homeostat.core.trial import Judge, LoadNormalisedJudge
from homeostat.core.view import View


class Detector(Protocol):
    @property
    def name(self) -> str: ...

    def detect(self, view: View) -> Iterable[Symptom]: ...


class Diagnoser(Protocol):
    @property
    def name(self) -> str: ...

    def diagnose(self, view: View, symptoms: Sequence[Symptom]) -> Iterable[Diagnosis]: ...


class Resolver(Protocol):
    @property
    def name(self) -> str: ...

    def resolve(self, view: View, diagnoses: Sequence[Diagnosis]) -> Iterable[Proposal]: ...


@dataclass(frozen=True, slots=True)
class Policy:
    """Plug-ins, and when they run.

    Detectors, diagnosers and resolvers with an attribute `while_unsettled = True` also run while the configuration is
    too new for a cycle. They must not read the window; what they propose is only an alert. If they find something,
    detectors with `in_any_configuration = True` run too, on the latest observations of any configuration.

    With `fresh_window`, detectors never see what was measured before the last action.
    """

    name: str
    detectors: tuple[Detector, ...] = ()
    diagnosers: tuple[Diagnoser, ...] = ()
    resolvers: tuple[Resolver, ...] = ()
    # The shortest time between two cycles: longer costs less and reacts later. A choice: every observation counts.
    cadence_s: float = 0.0
    # How long an action takes to show its effect: longer is surer, shorter acts again sooner. A choice.
    settle_s: float = 60.0
    # How far detectors look back: longer is steadier, shorter is newer. A choice.
    window_s: float = 600.0
    # But they see at least so many observations of the present configuration. More are steadier where batches are long.
    least_window: int = 0
    fresh_window: bool = True
    # Observations that are skipped after each change of configuration, because processes are cold. A choice.
    warm_up_observations: int = 1
    # With `fresh_window`, observations of a configuration before the first cycle. A choice.
    least_observations: int = 1
    # Growing again within this time counts against the shrink before it: longer shrinks less often. A choice: never.
    regret_s: float = 0.0
    # What a second of violation costs, in seconds of all instances. Headroom is planned by it; 0: by the noise alone.
    violation_cost: float = 0.0
    arbiter: Arbiter = field(default_factory=RankedArbiter)
    guards: tuple[Guard, ...] = DEFAULT_GUARDS
    memory: MemoryRule = field(default_factory=DecayingMemory)
    judge: Judge = field(default_factory=LoadNormalisedJudge)
