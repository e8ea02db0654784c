"""Everything the loop remembers between two steps: one frozen value."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Literal

from homeostat.core.calibration import JudgedCauses
from homeostat.core.configuration import Capabilities, Configuration, Knob
from homeostat.core.digest import Digest
from homeostat.core.earlier import Earlier
from homeostat.core.events import Apply, UnderWay
from homeostat.core.findings import Diagnosis, Proposal, Symptom
from homeostat.core.guards import Wish
from homeostat.core.memory import Entries, MemoryEntry
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.source_sample import SourceSample
from homeostat.core.topology import Topology
from homeostat.core.traffic import Traffic
from homeostat.core.trust import Trusts

Mode = Literal["observe", "advise", "earn", "regulate"]
MODES: tuple[Mode, ...] = ("observe", "advise", "earn", "regulate")


@dataclass(frozen=True, slots=True)
class ActiveAction:
    """An action under way (no receipt yet) or being judged (`applied_s` is set).

    `troubled` are the components that had a symptom when the action was decided: a later cause there is not new.
    `paces` says how many times longer than its peers each worker took at that time, to show if one turns slow later.
    """

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
    """An action that was advised but not taken. At `due_s` it is scored: did the problem stay without it?

    Ahead of a rise: has `awaited_per_s` arrived since `given_s`?
    """

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
    """`observed` is the configuration that the engine runs, `desired` the one that the loop wants, and `active` the
    actions that it has requested.

    `grown` says that the newest change only added executors. `last_action_s` says when the last action in a scope was
    decided or took effect, `last_remedy_s` the same for each scope and cause.
    `last_batches` holds the last batch of each run, `warm` the runs that have had a batch with rows. `last` is the
    newest action that took effect, judged or not: a person may still revert it. `sources` holds the last report of each
    source. `latest` holds the newest observations of any configuration, `earlier` a few of the past.
    """

    mode: Mode = "advise"
    objective: Objective = Objective()
    topology: Topology = Topology(())
    capabilities: Capabilities = Capabilities()
    observed: Configuration = Configuration()
    desired: Configuration = Configuration()
    epoch: int = 0
    epoch_since_s: float = 0.0
    grown: bool = False
    window: tuple[Observation, ...] = ()
    latest: tuple[Observation, ...] = ()
    earlier: Earlier = Earlier()
    history: tuple[Digest, ...] = ()
    traffic: Traffic = Traffic()
    last_batches: Mapping[str, int] = field(default_factory=dict)
    warm: frozenset[str] = frozenset()
    fresh: bool = False
    silent: bool = False
    under_way: UnderWay | None = None
    sources: Mapping[str, SourceSample] = field(default_factory=dict)
    last_cycle_s: float = float("-inf")
    last_action_s: Mapping[str, float] = field(default_factory=dict)
    last_remedy_s: Mapping[tuple[str, str], float] = field(default_factory=dict)
    active: tuple[ActiveAction, ...] = ()
    last: ActiveAction | None = None
    symptoms: Mapping[tuple[str, str], Standing] = field(default_factory=dict)
    diagnoses: Mapping[tuple[str, str], Standing] = field(default_factory=dict)
    refusals: Mapping[tuple[str, str, str], str] = field(default_factory=dict)
    alerts: Mapping[tuple[str, str], float] = field(default_factory=dict)
    shrink_wishes: Mapping[Knob, Wish] = field(default_factory=dict)
    memory: Entries = ()
    trust: Trusts = field(default_factory=dict)
    judged: JudgedCauses = field(default_factory=dict)
    shrunk: Mapping[str, MemoryEntry] = field(default_factory=dict)
    advice: tuple[Advice, ...] = ()
    advised: Mapping[str, Proposal] = field(default_factory=dict)
    earned: int = 0
    paused: str = ""
    numbers: Mapping[str, int] = field(default_factory=dict)
    hosts: frozenset[str] = frozenset()
    failing: frozenset[tuple[str, str]] = frozenset()


def acted(state: State, action: ActiveAction, at_s: float) -> State:
    """Note the time at which the action was decided or took effect."""
    remedies_s = {(action.scope, diagnosis.cause): at_s for diagnosis in action.proposal.because}
    return replace(
        state,
        last_action_s={**state.last_action_s, action.scope: at_s},
        last_remedy_s={**state.last_remedy_s, **remedies_s},
    )


def since(standing: Mapping[tuple[str, str], Standing]) -> dict[tuple[str, str], float]:
    return {key: one.since_s for key, one in standing.items()}


# Digests that the state holds: five hours of batches every ten seconds. More help the models, and take memory and time
# to save. A choice.
HISTORY_KEPT = 2_000
# Whole observations that the state holds, which are larger: twenty minutes, more than any policy looks back. A choice.
WINDOW_KEPT = 120
# Observations of any configuration that are kept for when none settles: enough to tell what is usual. A choice.
LATEST_KEPT = 12
# Tasks of the whole observations that the state holds, beyond the newest few: 56 bytes each, so about 30 MB. A choice:
# 120 observations of 4,000 tasks.
WINDOW_TASKS_KEPT = 500_000
# The newest observations are held however many tasks they have: no detector can do with fewer. A choice.
WINDOW_LEAST = 5
# Runs of which the state holds the last batch, so that none counts twice. Older runs report no more. A choice.
RUNS_KEPT = 200
# Pieces of advice that must have been right before the mode `earn` acts: more is safer and slower. A choice.
EARN_AFTER = 3
