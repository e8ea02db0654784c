"""The plug-ins of the loop and the policy that bundles them. Any object of the right shape will do."""

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
    """Plug-ins and a cadence.

    A cycle runs at most every `cadence_s`, and not within `settle_s` after an action. `window_s` bounds how far
    detectors look back; with `fresh_window` never to before the last action. `warm_up_observations` are skipped
    after each change of configuration, and with `fresh_window` nothing is concluded from fewer than
    `least_observations`. Growing again within `regret_s` counts against the shrinking before it.
    """

    name: str
    detectors: tuple[Detector, ...] = ()
    diagnosers: tuple[Diagnoser, ...] = ()
    resolvers: tuple[Resolver, ...] = ()
    cadence_s: float = 0.0
    settle_s: float = 60.0
    window_s: float = 600.0
    fresh_window: bool = True
    warm_up_observations: int = 1
    least_observations: int = 1
    regret_s: float = 0.0
    arbiter: Arbiter = field(default_factory=RankedArbiter)
    guards: tuple[Guard, ...] = DEFAULT_GUARDS
    memory: MemoryRule = field(default_factory=DecayingMemory)
    judge: Judge = field(default_factory=LoadNormalisedJudge)
