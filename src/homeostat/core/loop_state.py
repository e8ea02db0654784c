"""Everything the loop remembers between two steps: one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from homeostat.core.configuration import Capabilities, Configuration, Knob
from homeostat.core.digest import Digest
from homeostat.core.events import Apply, UnderWay
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.guards import Wish
from homeostat.core.memory import Entries, MemoryEntry
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.topology import Topology
from homeostat.core.traffic import Traffic
from homeostat.core.trust import Trusts

Mode = Literal["observe", "advise", "earn", "regulate"]
MODES: tuple[Mode, ...] = ("observe", "advise", "earn", "regulate")


@dataclass(frozen=True, slots=True)
class ActiveAction:
    """An action under way (no receipt yet) or being judged (`applied_s` is set). `troubled` are the components that
    showed a symptom when it was decided: a cause found there later is not a new one. But a worker may have turned slow
    that was as fast as its peers then: `paces` tells how many times longer each took."""

    command: Apply
    proposal: Proposal
    scope: str
    before: Configuration
    before_digests: tuple[Digest, ...]
    applied_s: float | None = None
    disturbed: str = ""
    troubled: frozenset[str] = frozenset()
    paces: Mapping[str, float] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Advice:
    """An action that was not taken, to be scored at `due_s`: did the problem stay without it? Ahead of a rise: did
    `awaited_per_s` come, since `given_s`?"""

    id: str
    cause: str
    component: str
    due_s: float
    given_s: float = 0.0
    awaited_per_s: float | None = None


@dataclass(frozen=True, slots=True)
class Standing:
    """A symptom or diagnosis that has been there since `since_s`, under one id."""

    id: str
    since_s: float
    finding: Symptom | Diagnosis


@dataclass(frozen=True, slots=True)
class State:
    """`observed` is what the engine runs, `desired` what the loop wants; what is requested lies in `active`.

    `seen` holds the last batch of each run, `warm` the runs that have had a batch with rows. `last` is the newest
    action that took effect, judged or not: a person may still take it back.
    """

    mode: Mode = "advise"
    objective: Objective = Objective()
    topology: Topology = Topology(())
    capabilities: Capabilities = Capabilities()
    observed: Configuration = Configuration()
    desired: Configuration = Configuration()
    epoch: int = 0
    epoch_since_s: float = 0.0
    window: tuple[Observation, ...] = ()
    history: tuple[Digest, ...] = ()
    traffic: Traffic = Traffic()
    seen: Mapping[str, int] = field(default_factory=dict)
    warm: frozenset[str] = frozenset()
    fresh: bool = False
    silent: bool = False
    under_way: UnderWay | None = None
    last_cycle_s: float = float("-inf")
    last_action_s: Mapping[str, float] = field(default_factory=dict)
    active: tuple[ActiveAction, ...] = ()
    last: ActiveAction | None = None
    symptoms: Mapping[tuple[str, str], Standing] = field(default_factory=dict)
    diagnoses: Mapping[tuple[str, str], Standing] = field(default_factory=dict)
    refusals: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    alerts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    shrink_wishes: Mapping[Knob, Wish] = field(default_factory=dict)
    memory: Entries = ()
    trust: Trusts = field(default_factory=dict)
    shrunk: Mapping[str, MemoryEntry] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()
    advised: Mapping[str, Proposal] = field(default_factory=dict)
    earned: int = 0
    paused: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    failing: frozenset[tuple[str, str]] = frozenset()


def since(standing: Mapping[tuple[str, str], Standing]) -> dict[tuple[str, str], float]:
    return {key: one.since_s for key, one in standing.items()}


HISTORY_KEPT = 2_000
WINDOW_KEPT = 120
EARN_AFTER = 3
