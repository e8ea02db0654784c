"""The health of a query's state: each detector says what a person would want to hear, and nothing of a healthy one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array, Observation, StateLimits, StateSample
from homeostat.core.policy import Detector
from homeostat.core.symptoms import (
    FIXED_STATE,
    LONG_REPLAY,
    SNAPSHOT_LAG,
    SNAPSHOT_REPAIRED,
    STATE_GROWS,
    STATE_MEMORY,
    UNKNOWN,
)
from homeostat.detectors.state_growth import StateGrowthDetector
from homeostat.detectors.state_health import (
    FixedStateDetector,
    LongReplayDetector,
    SnapshotLagDetector,
    SnapshotRepairedDetector,
    StateMemoryDetector,
)
from homeostat.testing import check_detector, instances, observations, view_of

DETECTORS: tuple[Detector, ...] = (
    StateGrowthDetector(),
    StateMemoryDetector(),
    LongReplayDetector(),
    SnapshotLagDetector(),
    SnapshotRepairedDetector(),
    FixedStateDetector(),
)
SPAN_S = 30.0
HOUR = int(3600 / SPAN_S)
MIB = 2.0**20
LIMITS = StateLimits(memory_bytes=1000 * MIB, versions_per_snapshot=10.0, maintenance_s=60.0)
HEALTHY: dict[str, float] = {
    "partitions": 8.0,
    "rows": 100_000.0,
    "updated_rows": 2000.0,
    "removed_rows": 100.0,
    "memory_bytes": 300 * MIB,
    "disk_bytes": 50 * MIB,
    "pinned_bytes": 2 * MIB,
    "commit_s": 0.4,
    "stall_s": 0.0,
    "loads": 0.0,
    "replayed": 0.0,
    "replay_s": 0.0,
    "repaired": 0.0,
}
Numbers = float | Sequence[float] | Array


def batches(
    count: int = 10,
    *,
    backend: str = "rocksdb",
    limits: StateLimits = LIMITS,
    load_per_s: Numbers = 100.0,
    watermark_gap_s: float = NAN,
    **state: Numbers,
) -> tuple[Observation, ...]:
    """A count on eight partitions, whose state is healthy but for the columns that are given, one value for each batch
    or one for all. Snapshots come every ten versions unless `snapshot_version` says otherwise."""
    columns = {
        "version": np.arange(1.0, count + 1.0),
        "snapshot_version": np.maximum(-1.0, np.floor((np.arange(count) - 2) / 10) * 10),
    }
    wanted: dict[str, Numbers] = {**HEALTHY, **columns, **state}
    table = {name: np.broadcast_to(np.asarray(values, dtype=np.float64), (count,)) for name, values in wanted.items()}
    rows = np.broadcast_to(np.asarray(load_per_s) * SPAN_S, (count,))
    tasks = {"scan": instances(100.0, 1.0, finish_s=1.0), "aggregate": instances([100.0] * 8, 1.0, finish_s=2.0)}
    flow: dict[str, Any] = {"arrival_per_s": rows / SPAN_S, "seconds": 4.0, "trigger_s": SPAN_S}
    seen = observations(
        count, tasks, span_s=SPAN_S, executors=2, slots=2.0, rows=rows, watermark_gap_s=watermark_gap_s, **flow
    )
    return tuple(
        replace(one, states={"stateStoreSave": _sample(backend, limits, {k: float(v[n]) for k, v in table.items()})})
        for n, one in enumerate(seen)
    )


def _sample(backend: str, limits: StateLimits, numbers: dict[str, Any]) -> StateSample:
    return StateSample("stateStoreSave", backend, limits=limits, **numbers)


def found(detector: Detector, observed: Sequence[Observation]) -> list[Symptom]:
    return list(detector.detect(view_of(observed)))


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_every_detector_keeps_its_contract(detector: Detector) -> None:
    check_detector(detector)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_a_query_without_state_has_no_symptoms(detector: Detector) -> None:
    assert found(detector, [replace(one, states={}) for one in batches()]) == []


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
@pytest.mark.parametrize("count", [1, 3 * HOUR])
def test_a_state_of_which_nothing_is_known_is_not_healthy(detector: Detector, count: int) -> None:
    lost = [replace(one, states={"state": StateSample("state")}) for one in batches(count)]

    (symptom,) = found(detector, lost)

    assert symptom.kind == UNKNOWN
    assert symptom.evidence.figures()["detector"] == detector.name


@pytest.mark.slow
@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.floats(0.01, 0.4), st.floats(0.0, 0.95), st.sampled_from([1, 20, HOUR, 4 * HOUR]))
def test_a_healthy_state_with_noise_has_no_symptoms(seed: int, sigma: float, phi: float, count: int) -> None:
    rng = np.random.default_rng(seed)

    def noisy(level: float) -> Array:
        noise = np.zeros(count)
        for n in range(1, count):
            noise[n] = phi * noise[n - 1] + rng.normal(0.0, sigma * math.sqrt(1.0 - phi**2))
        return level * np.exp(noise)

    load = noisy(100.0)
    names = ("rows", "disk_bytes", "updated_rows", "removed_rows", "commit_s")
    state: dict[str, Any] = {name: noisy(HEALTHY[name]) for name in names}
    state["memory_bytes"] = np.minimum(noisy(HEALTHY["memory_bytes"]), 700 * MIB)

    observed = batches(count, load_per_s=load, stall_s=np.abs(rng.normal(0.0, 0.3, count)), **state)

    assert [symptom for detector in DETECTORS for symptom in found(detector, observed)] == []


# Growth


def growing(count: int = 3 * HOUR, an_hour: float = 0.2, **other: Any) -> tuple[Observation, ...]:
    rng = np.random.default_rng(5)
    hours = np.arange(count) / HOUR
    rows = 100_000.0 * (1.0 + an_hour * hours) * np.exp(rng.normal(0.0, 0.003, count))
    return batches(count, rows=rows, **other)


def test_state_that_grows_steadily_is_found_and_it_is_said_when_it_will_have_doubled() -> None:
    (symptom,) = found(StateGrowthDetector(), growing())

    assert (symptom.kind, symptom.component) == (STATE_GROWS, "")
    assert symptom.evidence.figures()["operator"] == "stateStoreSave"
    assert symptom.evidence.figures()["state_rows"] == pytest.approx(160_000, rel=0.03)
    assert symptom.evidence.figures()["growth_per_hour"] == pytest.approx(20_000, rel=0.1)
    assert symptom.evidence.figures()["hours_to_double"] == pytest.approx(8.0, rel=0.1)
    assert 0.5 < symptom.severity < 1.0


@pytest.mark.slow
def test_growth_that_began_an_hour_ago_is_found_though_the_state_was_steady_before() -> None:
    rows = np.concatenate([np.full(4 * HOUR, 100_000.0), 100_000.0 + 500.0 * np.arange(int(1.2 * HOUR))])

    assert [s.kind for s in found(StateGrowthDetector(), batches(len(rows), rows=rows))] == [STATE_GROWS]
    assert found(StateGrowthDetector(), batches(len(rows) - HOUR, rows=rows[:-HOUR])) == []


def test_batches_that_come_seldom_are_watched_for_longer() -> None:
    """One in ten minutes."""
    seen = growing(8 * HOUR)[::20]

    assert [s.kind for s in found(StateGrowthDetector(), seen)] == [STATE_GROWS]
    assert found(StateGrowthDetector(), seen[:40]) == []


def levelling(count: int) -> Array:
    """Words that are seen for the first time become rare."""
    rows: Array = 200_000.0 * (1.0 - np.exp(-np.arange(count) / (0.5 * HOUR)))
    return rows


def windows(count: int) -> Array:
    """A day's windows: rows come evenly, and leave after two hours."""
    rows: Array = 1000.0 * np.minimum(np.arange(count), 2 * HOUR)
    return rows


@pytest.mark.slow
@pytest.mark.parametrize(
    ("rows", "load_per_s"),
    [
        pytest.param(levelling(3 * HOUR), 100.0, id="it levels off"),
        pytest.param(windows(4 * HOUR), 100.0, id="it has levelled off"),
        pytest.param(100_000.0 + 40.0 * np.arange(HOUR // 2), 100.0, id="too early to tell"),
        pytest.param(100_000.0 * (1 + 0.02 * np.arange(3 * HOUR) / HOUR), 100.0, id="so slowly that it takes days"),
        pytest.param(np.linspace(100_000.0, 300_000.0, 3 * HOUR), np.linspace(100.0, 300.0, 3 * HOUR), id="the load"),
        pytest.param(np.concatenate([np.full(HOUR, 1e5), np.full(HOUR, 2e5)]), 100.0, id="it has jumped"),
        pytest.param(np.linspace(300_000.0, 100_000.0, 3 * HOUR), 100.0, id="it shrinks"),
        pytest.param(np.zeros(3 * HOUR), 0.0, id="nothing at all"),
    ],
)
def test_other_states_do_not_grow_without_bound(rows: Array, load_per_s: Numbers) -> None:
    assert found(StateGrowthDetector(), batches(len(rows), rows=rows, load_per_s=load_per_s)) == []


@pytest.mark.slow
def test_a_state_that_follows_a_load_of_the_morning_with_delay_is_not_growing() -> None:
    """The load doubles within an hour and stays; the state, of the last two hours, needs two more to get there."""
    count = 5 * HOUR
    load = 100.0 * (1.0 + np.clip((np.arange(count) - 2 * HOUR) / HOUR, 0.0, 1.0))
    kept = np.convolve(np.concatenate([np.full(2 * HOUR, 100.0), load]), np.ones(2 * HOUR))[2 * HOUR : 2 * HOUR + count]

    seen = batches(count, rows=SPAN_S * kept, load_per_s=load)

    for end in range(3 * HOUR, count, 20):
        assert found(StateGrowthDetector(), seen[:end]) == []


def test_growth_of_the_bytes_alone_is_found_too() -> None:
    """The same keys, each with a list that becomes longer."""
    size = 50 * MIB * (1.0 + 0.8 * np.arange(3 * HOUR) / HOUR)

    (symptom,) = found(StateGrowthDetector(), batches(3 * HOUR, disk_bytes=size))

    assert symptom.evidence.figures()["state_bytes"] == pytest.approx(165 * MIB, rel=0.05)


def test_a_query_with_a_watermark_is_given_time_until_it_removes_its_first_rows() -> None:
    young = growing(3 * HOUR, removed_rows=0.0, watermark_gap_s=600.0)
    removing = growing(3 * HOUR, removed_rows=5.0, watermark_gap_s=600.0)
    old = growing(5 * HOUR, removed_rows=0.0, watermark_gap_s=600.0)

    assert [len(found(StateGrowthDetector(), seen)) for seen in (young, removing, old)] == [0, 1, 1]


# Memory


def full(**state: Any) -> tuple[Observation, ...]:
    return batches(3, **state)


def test_memory_near_its_limit_is_pressure() -> None:
    (symptom,) = found(StateMemoryDetector(), full(memory_bytes=900 * MIB))

    assert symptom.kind == STATE_MEMORY
    assert symptom.severity == pytest.approx(0.9)
    assert symptom.evidence.figures()["share_of_limit"] == pytest.approx(0.9)


def test_a_moment_near_the_limit_is_none() -> None:
    assert found(StateMemoryDetector(), full(memory_bytes=[900 * MIB, 700 * MIB, 900 * MIB])) == []


def test_a_bounded_store_may_fill_its_cache_but_not_pin_all_of_it() -> None:
    bounded = replace(LIMITS, bounded=True)

    assert found(StateMemoryDetector(), full(memory_bytes=1000 * MIB, limits=bounded)) == []
    (symptom,) = found(StateMemoryDetector(), full(pinned_bytes=850 * MIB, limits=bounded))
    assert symptom.kind == STATE_MEMORY


def test_writers_that_wait_for_the_store_are_pressure() -> None:
    """Eight writers, of a batch of four seconds."""
    (symptom,) = found(StateMemoryDetector(), full(stall_s=3.2, limits=StateLimits()))

    assert symptom.evidence.figures()["share_of_batch_stalled"] == pytest.approx(0.1)


# What a restart would cost


def replayed_once(count: int, **state: Any) -> tuple[Observation, ...]:
    """The first batch loaded its state: five changelogs in each of eight partitions, half a second for each."""
    first = np.zeros(count)
    first[0] = 1.0
    return batches(count, loads=8 * first, replayed=40 * first, replay_s=20 * first, **state)


def test_a_restart_that_would_replay_for_long_is_foretold_from_the_last_one() -> None:
    """Eight partitions on four slots: two waves of 90 changelogs."""
    (symptom,) = found(LongReplayDetector(), replayed_once(100, snapshot_version=10.0))

    assert symptom.kind == LONG_REPLAY
    assert symptom.evidence.figures()["changelogs"] == 90.0
    assert symptom.evidence.figures()["replay_s"] == pytest.approx(90.0)


def test_a_restart_from_a_recent_snapshot_is_no_trouble() -> None:
    assert found(LongReplayDetector(), replayed_once(100)) == []


def test_what_a_replay_takes_is_unknown_until_one_was_seen() -> None:
    (symptom,) = found(LongReplayDetector(), batches(100, snapshot_version=10.0, replayed=NAN))

    assert (symptom.kind, symptom.evidence.figures()["missing"]) == (UNKNOWN, "time to replay changelogs")
    assert found(LongReplayDetector(), batches(100, replayed=NAN)) == []


def test_versions_count_from_when_the_state_was_loaded_where_no_snapshot_was_made_since() -> None:
    (symptom,) = found(LongReplayDetector(), replayed_once(100, snapshot_version=-1.0))

    assert symptom.evidence.figures()["changelogs"] == 99.0


# Snapshots


def test_snapshots_that_are_not_uploaded_for_long_are_found() -> None:
    (symptom,) = found(SnapshotLagDetector(), batches(80, snapshot_version=10.0))

    assert symptom.kind == SNAPSHOT_LAG
    assert symptom.evidence.figures()["versions_behind"] == 70.0
    assert symptom.evidence.figures()["without_snapshot_s"] == pytest.approx(79 * SPAN_S)


@pytest.mark.parametrize(
    "observed",
    [
        pytest.param(batches(80), id="they are uploaded"),
        pytest.param(batches(50, snapshot_version=10.0), id="not so many versions"),
        pytest.param(batches(80, snapshot_version=-1.0)[60:], id="it was loaded lately"),
        pytest.param(
            batches(80, snapshot_version=10.0, limits=replace(LIMITS, versions_per_snapshot=100.0)), id="as it was set"
        ),
        pytest.param(
            batches(80, snapshot_version=10.0, limits=replace(LIMITS, maintenance_s=600.0)), id="maintained seldom"
        ),
    ],
)
def test_snapshots_that_will_come_are_not_late(observed: Sequence[Observation]) -> None:
    assert found(SnapshotLagDetector(), observed) == []


def test_a_repaired_snapshot_is_told_for_an_hour() -> None:
    repaired = np.zeros(2 * HOUR)
    repaired[5] = 2.0

    (symptom,) = found(SnapshotRepairedDetector(), batches(HOUR, repaired=repaired[:HOUR]))

    assert (symptom.kind, symptom.evidence.figures()["snapshots_repaired"]) == (SNAPSHOT_REPAIRED, 2.0)
    assert found(SnapshotRepairedDetector(), batches(2 * HOUR, repaired=repaired)) == []


def test_a_backend_that_cannot_be_repartitioned_is_told() -> None:
    (symptom,) = found(FixedStateDetector(), batches(backend="hdfs"))

    assert (symptom.kind, symptom.evidence.figures()["backend"]) == (FIXED_STATE, "hdfs")


def test_of_several_operators_the_one_that_is_worst_off_is_named() -> None:
    def with_two(one: Observation) -> Observation:
        state = one.states["stateStoreSave"]
        return replace(one, states={**one.states, "dedupe": replace(state, memory_bytes=950 * MIB)})

    (symptom,) = found(StateMemoryDetector(), [with_two(one) for one in full(memory_bytes=850 * MIB)])

    assert symptom.evidence.figures()["operator"] == "dedupe"
