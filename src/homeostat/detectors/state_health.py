"""Detectors of unhealthy state, from what the state store reports: memory, snapshots, the cost of a restart."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np

from homeostat.core.digest import Digest
from homeostat.core.evidence import Evidence, MissingMetric
from homeostat.core.evidence_limits import LEAST_OBSERVATIONS
from homeostat.core.findings import Symptom
from homeostat.core.history import History
from homeostat.core.observation import NAN, Array, IntArray, StateSample
from homeostat.core.symptoms import FIXED_STATE, LONG_REPLAY, SNAPSHOT_LAG, SNAPSHOT_REPAIRED, STATE_MEMORY, UNKNOWN
from homeostat.core.view import View
from homeostat.models.batch_model import slots_of, waves_of

ROCKSDB = "rocksdb"
# Spark's defaults, for a store whose settings are not known: spark.sql.streaming.stateStore.minDeltasForSnapshot and
# maintenanceInterval.
_VERSIONS_PER_SNAPSHOT = 10.0
_MAINTENANCE_S = 60.0
# Snapshots may be this many times as late as they are due before it matters that the time of a replay is not known: one
# that is being uploaded counts as late too. A choice.
_LATE_SNAPSHOTS = 2.0
# Severity is 1 − limit ÷ (2 × value): a half at the limit, and towards 1 beyond it. It only orders symptoms. A choice.
_LIMIT_WEIGHT = 2.0
# Severities that no figure gives: they only order symptoms. Choices.
_LEAST_MEMORY_SEVERITY, _REPAIRED_SEVERITY, _FIXED_SEVERITY = 0.5, 0.8, 0.2


class OperatorBatch(NamedTuple):
    """One operator in one batch."""

    batch: Digest
    state: StateSample


@dataclass(frozen=True, slots=True)
class OperatorHistory:
    """One operator in every batch that reported its state; `places` are those of the batches in the history."""

    operator: str
    history: History
    places: IntArray

    def batch(self, name: str) -> Array:
        """Return a number of the batches."""
        return self.history.flow(name, len(self.history))[self.places]

    def state(self, name: str) -> Array:
        """Return a number of the state after each batch."""
        return self.history.state(self.operator, name, len(self.history))[self.places]

    def last(self, count: int) -> list[OperatorBatch]:
        batches = [self.history[place] for place in self.places[-count:].tolist()]
        return [OperatorBatch(batch, batch.states[self.operator]) for batch in batches]

    @property
    def latest(self) -> OperatorBatch:
        return self.last(1)[0]


def operators(view: View) -> Mapping[str, OperatorHistory]:
    """Return the whole history of every stateful operator that the query has now: state outlives configurations."""
    return view.once("state operators", _operators)


def _operators(view: View) -> Mapping[str, OperatorHistory]:
    if not view.numbers.operators:
        return {}  # without looking through the history of a query that has no state
    names = next((digest.states for digest in reversed(view.history) if digest.states), ())
    return {name: OperatorHistory(name, view.numbers, view.numbers.reports(name)) for name in names}


def unknown_symptom(detector: str, missing: str) -> Symptom:
    return Symptom(UNKNOWN, evidence=MissingMetric(detector, missing))


def worst(symptoms: Sequence[Symptom]) -> Iterator[Symptom]:
    """Yield the worst symptom of a query's operators; a missing metric only if there is no other symptom."""
    problems = [symptom for symptom in symptoms if symptom.kind != UNKNOWN]
    if symptoms:
        yield max(problems or symptoms, key=lambda symptom: symptom.severity)


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
    """Reports a store that uses most of the memory it may have, or whose writers wait for it.

    A bounded store fills its cache up to the bound by design, so only pinned memory counts there.
    """

    # The share of its memory that a store may use: lower warns sooner and more often without need. A choice.
    most: float = 0.8
    # The share of a batch that its writers may wait: lower reports ordinary flushes. A choice.
    most_stalled: float = 0.05
    name: str = STATE_MEMORY

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst(
            [s for name, one in operators(view).items() if (s := self._judge(name, one.last(LEAST_OBSERVATIONS)))]
        )

    def _judge(self, operator: str, batches: Sequence[OperatorBatch]) -> Symptom | None:
        shares = [_memory_share(one.state) for one in batches]
        stalled_shares = [_stalled_share(one) for one in batches]
        if not math.isfinite(shares[-1]) and not math.isfinite(stalled_shares[-1]):
            return unknown_symptom(self.name, "memory of the state, or its limit")
        full, stalls = _always(shares, self.most), _always(stalled_shares, self.most_stalled)
        if not full and not stalls:
            return None
        evidence = StateMemory(
            operator,
            batches[-1].state.memory_bytes,
            shares[-1] if math.isfinite(shares[-1]) else None,
            stalled_shares[-1] if stalls else None,
        )
        return Symptom(STATE_MEMORY, "", min(1.0, max(shares[-1] if full else 0.0, _LEAST_MEMORY_SEVERITY)), evidence)


def _always(shares: Sequence[float], least: float) -> bool:
    return len(shares) == LEAST_OBSERVATIONS and all(share >= least for share in shares)


def _memory_share(state: StateSample) -> float:
    bytes_in_use = state.pinned_bytes if state.limits.bounded else state.memory_bytes
    return bytes_in_use / state.limits.memory_bytes if state.limits.memory_bytes > 0 else NAN


def _stalled_share(one: OperatorBatch) -> float:
    """Of the batch, for the writer of one partition."""
    busy_s = one.batch.seconds * one.state.partitions
    return one.state.stall_s / busy_s if busy_s > 0 else NAN


@dataclass(frozen=True, slots=True)
class LongReplayDetector:
    """Reports that a restart would replay the changelogs since the last snapshot for longer than `longest_s`.

    It assumes that a changelog takes as long as in earlier replays.
    """

    # A shorter time reports restarts that nobody would notice. A choice.
    longest_s: float = 60.0
    name: str = LONG_REPLAY

    def detect(self, view: View) -> Iterator[Symptom]:
        slots = max(1.0, slots_of(view))
        yield from worst([s for one in operators(view).values() if (s := self._judge(one, slots))])

    def _judge(self, one: OperatorHistory, slots: float) -> Symptom | None:
        state = one.latest.state
        behind, partitions = versions_behind(one), state.partitions
        if not (math.isfinite(behind) and math.isfinite(partitions)):
            return unknown_symptom(self.name, "version of the last snapshot")
        replayed, replay_s = one.state("replayed"), one.state("replay_s")
        is_known = (replayed > 0) & np.isfinite(replay_s)
        files = sum(replayed[is_known].tolist())
        if not files:
            due = _LATE_SNAPSHOTS * _limit(state.limits.versions_per_snapshot, _VERSIONS_PER_SNAPSHOT)
            return None if behind <= due else unknown_symptom(self.name, "time to replay changelogs")
        one_s = sum(replay_s[is_known].tolist()) / files
        restart_s = behind * one_s * waves_of(max(1, int(partitions)), slots)
        if restart_s < self.longest_s:
            return None
        evidence = LongReplay(one.operator, behind, one_s, restart_s)
        return Symptom(LONG_REPLAY, "", 1.0 - self.longest_s / (_LIMIT_WEIGHT * restart_s), evidence)


@dataclass(frozen=True, slots=True)
class SnapshotLagDetector:
    """Reports a partition that uploaded no snapshot for many times the versions and the time until one is due."""

    # Fewer would report uploads that are only slow. Both are Spark's own, for its warning about late snapshots.
    times_versions: float = 5.0
    times_maintenance: float = 10.0
    name: str = SNAPSHOT_LAG

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for one in operators(view).values() if (s := self._judge(one))])

    def _judge(self, one: OperatorHistory) -> Symptom | None:
        behind, latest = versions_behind(one), one.latest
        limits = latest.state.limits
        if not math.isfinite(behind):
            return unknown_symptom(self.name, "version of the last snapshot")
        unchanged_s = latest.batch.at_s - float(one.batch("at_s")[_since_snapshot(one)])
        most = self.times_versions * _limit(limits.versions_per_snapshot, _VERSIONS_PER_SNAPSHOT)
        longest_s = self.times_maintenance * _limit(limits.maintenance_s, _MAINTENANCE_S)
        if behind <= most or unchanged_s <= longest_s:
            return None
        evidence = SnapshotLag(one.operator, behind, unchanged_s)
        return Symptom(SNAPSHOT_LAG, "", 1.0 - most / (_LIMIT_WEIGHT * behind), evidence)


def versions_behind(one: OperatorHistory) -> float:
    """Return how many versions came after the last snapshot, or after the load if there is no snapshot."""
    latest = one.latest.state
    if latest.snapshot_version >= 0:
        return latest.version - latest.snapshot_version
    if latest.snapshot_version != -1:
        return NAN
    return latest.version - float(one.state("version")[_since_snapshot(one)])


def _since_snapshot(one: OperatorHistory) -> int:
    """Return which of the batches was the first since the version of the last snapshot changed."""
    versions = one.state("snapshot_version")
    others = np.flatnonzero(versions != versions[-1])
    return min(int(others[-1]) + 1, len(versions) - 1) if len(others) else 0


def _limit(value: float, default: float) -> float:
    """Return the limit as it is set, or the default if it is not set or not above zero."""
    return value if math.isfinite(value) and value > 0 else default


@dataclass(frozen=True, slots=True)
class SnapshotRepairedDetector:
    """Reports that a snapshot could not be read and Spark went back to an older one."""

    # How long it is reported after it happened: shorter may be missed, longer hides that it is over. A choice.
    reported_s: float = 3600.0
    name: str = SNAPSHOT_REPAIRED

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for one in operators(view).values() if (s := self._judge(one, view.now_s))])

    def _judge(self, one: OperatorHistory, now_s: float) -> Symptom | None:
        repaired = one.state("repaired")
        recent = (one.batch("at_s") > now_s - self.reported_s) & (repaired > 0)
        if not recent.any():
            return None if math.isfinite(repaired[-1]) else unknown_symptom(self.name, "snapshots repaired")
        count, batches = sum(repaired[recent].tolist()), one.batch("batch")[recent]
        evidence = SnapshotRepaired(one.operator, count, float(batches[-1]))
        return Symptom(SNAPSHOT_REPAIRED, "", _REPAIRED_SEVERITY, evidence)


@dataclass(frozen=True, slots=True)
class FixedStateDetector:
    """Reports a backend that cannot be repartitioned, so that the number of state partitions is fixed."""

    name: str = FIXED_STATE

    def detect(self, view: View) -> Iterator[Symptom]:
        yield from worst([s for name, one in operators(view).items() if (s := self._judge(name, one.latest.state))])

    def _judge(self, operator: str, state: StateSample) -> Symptom | None:
        if not state.backend:
            return unknown_symptom(self.name, "backend of the state")
        if state.backend == ROCKSDB:
            return None
        return Symptom(FIXED_STATE, "", _FIXED_SEVERITY, FixedState(operator, state.backend))
