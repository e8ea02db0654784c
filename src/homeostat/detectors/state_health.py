"""The health of a query's state, from what its store tells: memory, snapshots, what a restart would cost."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

from homeostat.core.digest import Digest
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, StateSample
from homeostat.core.symptoms import FIXED_STATE, LONG_REPLAY, SNAPSHOT_LAG, SNAPSHOT_REPAIRED, STATE_MEMORY, UNKNOWN
from homeostat.core.view import View
from homeostat.models.batch_model import slots_of, waves_of

ROCKSDB = "rocksdb"
# Where the settings of the store are not known: what Spark has unless it is told otherwise.
_VERSIONS_PER_SNAPSHOT = 10.0
_MAINTENANCE_S = 60.0


class Seen(NamedTuple):
    """One operator in one batch."""

    batch: Digest
    state: StateSample


def operators(view: View) -> Mapping[str, Sequence[Seen]]:
    """Every stateful operator that the query has now, over all that is kept: state outlives configurations."""
    return view.once("state operators", _operators)


def _operators(view: View) -> Mapping[str, Sequence[Seen]]:
    batches = [digest for digest in view.history if digest.states]
    names = batches[-1].states if batches else ()
    return {name: [Seen(batch, batch.states[name]) for batch in batches if name in batch.states] for name in names}


def unknown(detector: str, missing: str) -> Symptom:
    return Symptom(UNKNOWN, evidence=MissingMetric(detector, missing))


def worst(found: Sequence[Symptom]) -> Iterator[Symptom]:
    """Of a query with several operators the one that is worst off; that something is unknown only if none is."""
    known = [symptom for symptom in found if symptom.kind != UNKNOWN]
    if found:
        yield max(known or found, key=lambda symptom: symptom.severity)


@dataclass(frozen=True, slots=True)
class StateMemory(Evidence):
    headline: ClassVar[str] = "the state needs most of its memory"
    operator: str
    memory_bytes: float
    share_of_limit: float | None = None
    share_of_batch_stalled: float | None = None


@dataclass(frozen=True, slots=True)
class LongReplay(Evidence):
    headline: ClassVar[str] = "a restart would replay changelogs for a long time"
    operator: str
    changelogs: float
    one_changelog_s: float
    replay_s: float


@dataclass(frozen=True, slots=True)
class SnapshotLag(Evidence):
    headline: ClassVar[str] = "snapshots of the state are late"
    operator: str
    versions_behind: float
    without_snapshot_s: float


@dataclass(frozen=True, slots=True)
class SnapshotRepaired(Evidence):
    headline: ClassVar[str] = "a damaged snapshot of the state was skipped"
    operator: str
    snapshots_repaired: float
    batch: float


@dataclass(frozen=True, slots=True)
class FixedState(Evidence):
    headline: ClassVar[str] = "the number of state partitions cannot be changed"
    operator: str
    backend: str


@dataclass(frozen=True, slots=True)
class StateMemoryDetector:
    """The store uses most of the memory it may have, or its writers wait for it.

    A store that is bounded fills its cache up to the bound, as it should: there only what is pinned counts.
    """

    most: float = 0.8
    most_stalled: float = 0.05
    name: str = STATE_MEMORY

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst(
            [s for name, seen in operators(view).items() if (s := self._judge(name, seen[-LEAST_OBSERVATIONS:]))]
        )

    def _judge(self, operator: str, seen: Sequence[Seen]) -> Symptom | None:
        used = [_memory_share(one.state) for one in seen]
        stalled = [_stalled_share(one) for one in seen]
        if not math.isfinite(used[-1]) and not math.isfinite(stalled[-1]):
            return unknown(self.name, "memory of the state, or its limit")
        full, stalls = _always(used, self.most), _always(stalled, self.most_stalled)
        if not full and not stalls:
            return None
        evidence = StateMemory(
            operator,
            seen[-1].state.memory_bytes,
            used[-1] if math.isfinite(used[-1]) else None,
            stalled[-1] if stalls else None,
        )
        return Symptom(STATE_MEMORY, "", min(1.0, max(used[-1] if full else 0.0, 0.5)), evidence)


def _always(shares: Sequence[float], least: float) -> bool:
    return len(shares) == LEAST_OBSERVATIONS and all(share >= least for share in shares)


def _memory_share(state: StateSample) -> float:
    used = state.pinned_bytes if state.limits.bounded else state.memory_bytes
    return used / state.limits.memory_bytes if state.limits.memory_bytes > 0 else NAN


def _stalled_share(seen: Seen) -> float:
    """Of the batch, for the writer of one partition."""
    busy_s = seen.batch.seconds * seen.state.partitions
    return seen.state.stall_s / busy_s if busy_s > 0 else NAN


@dataclass(frozen=True, slots=True)
class LongReplayDetector:
    """After a failure the changelogs since the last snapshot are replayed: by what that took before, for longer than
    `longest_s`."""

    longest_s: float = 60.0
    name: str = LONG_REPLAY

    def detect(self, view: View) -> Iterator[Symptom]:
        slots = max(1.0, slots_of(view))
        yield from worst([s for name, seen in operators(view).items() if (s := self._judge(name, seen, slots))])

    def _judge(self, operator: str, seen: Sequence[Seen], slots: float) -> Symptom | None:
        behind, partitions = versions_behind(seen), seen[-1].state.partitions
        if not (math.isfinite(behind) and math.isfinite(partitions)):
            return unknown(self.name, "version of the last snapshot")
        replays = [one.state for one in seen if one.state.replayed > 0 and math.isfinite(one.state.replay_s)]
        files = sum(state.replayed for state in replays)
        if not files:
            due = 2.0 * _known(seen[-1].state.limits.versions_per_snapshot, _VERSIONS_PER_SNAPSHOT)
            return None if behind <= due else unknown(self.name, "time to replay changelogs")
        one_s = sum(state.replay_s for state in replays) / files
        restart_s = behind * one_s * waves_of(max(1, int(partitions)), slots)
        if restart_s < self.longest_s:
            return None
        evidence = LongReplay(operator, behind, one_s, restart_s)
        return Symptom(LONG_REPLAY, "", 1.0 - self.longest_s / (2.0 * restart_s), evidence)


@dataclass(frozen=True, slots=True)
class SnapshotLagDetector:
    """Some partition has not uploaded a snapshot for many times the versions and the time after which one is due: the
    rule by which Spark itself warns."""

    times_versions: float = 5.0
    times_maintenance: float = 10.0
    name: str = SNAPSHOT_LAG

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for name, seen in operators(view).items() if (s := self._judge(name, seen))])

    def _judge(self, operator: str, seen: Sequence[Seen]) -> Symptom | None:
        behind, limits = versions_behind(seen), seen[-1].state.limits
        if not math.isfinite(behind):
            return unknown(self.name, "version of the last snapshot")
        stood_s = seen[-1].batch.at_s - _unchanged(seen)[0].batch.at_s
        most = self.times_versions * _known(limits.versions_per_snapshot, _VERSIONS_PER_SNAPSHOT)
        longest_s = self.times_maintenance * _known(limits.maintenance_s, _MAINTENANCE_S)
        if behind <= most or stood_s <= longest_s:
            return None
        evidence = SnapshotLag(operator, behind, stood_s)
        return Symptom(SNAPSHOT_LAG, "", 1.0 - most / (2.0 * behind), evidence)


def versions_behind(seen: Sequence[Seen]) -> float:
    """How many versions came after the last snapshot; since it was loaded, where there was none."""
    latest = seen[-1].state
    if latest.snapshot_version >= 0:
        return latest.version - latest.snapshot_version
    return latest.version - _unchanged(seen)[0].state.version if latest.snapshot_version == -1 else NAN


def _unchanged(seen: Sequence[Seen]) -> Sequence[Seen]:
    """Since the version of the last snapshot has been what it is."""
    latest = seen[-1].state.snapshot_version
    back = next((n for n, one in enumerate(reversed(seen)) if one.state.snapshot_version != latest), len(seen))
    return seen[len(seen) - max(back, 1) :]


def _known(value: float, default: float) -> float:
    """A limit of nothing or less is none."""
    return value if math.isfinite(value) and value > 0 else default


@dataclass(frozen=True, slots=True)
class SnapshotRepairedDetector:
    """A snapshot could not be read and Spark went back to an older one: told for so long after it happened."""

    told_s: float = 3600.0
    name: str = SNAPSHOT_REPAIRED

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for name, seen in operators(view).items() if (s := self._judge(name, seen, view.now_s))])

    def _judge(self, operator: str, seen: Sequence[Seen], now_s: float) -> Symptom | None:
        recent = [one for one in seen if one.batch.at_s > now_s - self.told_s and one.state.repaired > 0]
        if not recent:
            return None if math.isfinite(seen[-1].state.repaired) else unknown(self.name, "snapshots repaired")
        count = sum(one.state.repaired for one in recent)
        evidence = SnapshotRepaired(operator, count, float(recent[-1].batch.batch))
        return Symptom(SNAPSHOT_REPAIRED, "", 0.8, evidence)


@dataclass(frozen=True, slots=True)
class FixedStateDetector:
    """The number of state partitions can never be changed: this backend cannot be repartitioned."""

    name: str = FIXED_STATE

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for name, seen in operators(view).items() if (s := self._judge(name, seen[-1].state))])

    def _judge(self, operator: str, state: StateSample) -> Symptom | None:
        if not state.backend:
            return unknown(self.name, "backend of the state")
        if state.backend == ROCKSDB:
            return None
        return Symptom(FIXED_STATE, "", 0.2, FixedState(operator, state.backend))
