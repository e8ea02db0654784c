"""The health of a query's state: each detector says what a person would want to hear, and nothing of a healthy one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.observation import NAN, Array, Observation, StateLimits, StateSample
from homeostat.core.policy_definition import Detector
from homeostat.core.symptoms import (
    FIXED_STATE,
    LONG_REPLAY,
    SNAPSHOT_LAG,
    SNAPSHOT_REPAIRED,
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
from homeostat.testing import check_detector
from support.examples import tenth_of_examples
from support.state_batches import HEALTHY, HOUR, LIMITS, MIB, SPAN_S, batches, symptoms_of

DETECTORS: tuple[Detector, ...] = (
    StateGrowthDetector(),
    StateMemoryDetector(),
    LongReplayDetector(),
    SnapshotLagDetector(),
    SnapshotRepairedDetector(),
    FixedStateDetector(),
)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_every_detector_keeps_its_contract(detector: Detector) -> None:
    check_detector(detector)


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
def test_a_query_without_state_has_no_symptoms(detector: Detector) -> None:
    assert symptoms_of(detector, [replace(one, states={}) for one in batches()]) == []


@pytest.mark.parametrize("detector", DETECTORS, ids=lambda detector: detector.name)
@pytest.mark.parametrize("count", [1, 3 * HOUR])
def test_a_state_of_which_nothing_is_known_is_not_healthy(detector: Detector, count: int) -> None:
    lost = [replace(one, states={"state": StateSample("state")}) for one in batches(count)]

    (symptom,) = symptoms_of(detector, lost)

    assert symptom.kind == UNKNOWN
    assert symptom.evidence.figures()["detector"] == detector.name


@pytest.mark.slow
@tenth_of_examples()
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

    assert [symptom for detector in DETECTORS for symptom in symptoms_of(detector, observed)] == []


def full(**state: Any) -> tuple[Observation, ...]:
    return batches(3, **state)


def test_memory_near_its_limit_is_pressure() -> None:
    (symptom,) = symptoms_of(StateMemoryDetector(), full(memory_bytes=900 * MIB))

    assert symptom.kind == STATE_MEMORY
    assert symptom.severity == pytest.approx(0.9)
    assert symptom.evidence.figures()["share_of_limit"] == pytest.approx(0.9)


def test_a_moment_near_the_limit_is_none() -> None:
    assert symptoms_of(StateMemoryDetector(), full(memory_bytes=[900 * MIB, 700 * MIB, 900 * MIB])) == []


def test_a_bounded_store_may_fill_its_cache_but_not_pin_all_of_it() -> None:
    bounded = replace(LIMITS, bounded=True)

    assert symptoms_of(StateMemoryDetector(), full(memory_bytes=1000 * MIB, limits=bounded)) == []
    (symptom,) = symptoms_of(StateMemoryDetector(), full(pinned_bytes=850 * MIB, limits=bounded))
    assert symptom.kind == STATE_MEMORY


def test_writers_that_wait_for_the_store_are_pressure() -> None:
    """Eight writers, of a batch of four seconds."""
    (symptom,) = symptoms_of(StateMemoryDetector(), full(stall_s=3.2, limits=StateLimits()))

    assert symptom.evidence.figures()["share_of_batch_stalled"] == pytest.approx(0.1)


# What a restart would cost


def replayed_once(count: int, **state: Any) -> tuple[Observation, ...]:
    """The first batch loaded its state: five changelogs in each of eight partitions, half a second for each."""
    first = np.zeros(count)
    first[0] = 1.0
    return batches(count, loads=8 * first, replayed=40 * first, replay_s=20 * first, **state)


def test_a_restart_that_would_replay_for_long_is_foretold_from_the_last_one() -> None:
    """Eight partitions on four slots: two waves of 90 changelogs."""
    (symptom,) = symptoms_of(LongReplayDetector(), replayed_once(100, snapshot_version=10.0))

    assert symptom.kind == LONG_REPLAY
    assert symptom.evidence.figures()["changelogs"] == 90.0
    assert symptom.evidence.figures()["replay_s"] == pytest.approx(90.0)


def test_a_restart_from_a_recent_snapshot_is_no_trouble() -> None:
    assert symptoms_of(LongReplayDetector(), replayed_once(100)) == []


def test_what_a_replay_takes_is_unknown_until_one_was_seen() -> None:
    (symptom,) = symptoms_of(LongReplayDetector(), batches(100, snapshot_version=10.0, replayed=NAN))

    assert (symptom.kind, symptom.evidence.figures()["missing"]) == (UNKNOWN, "time to replay changelogs")
    assert symptoms_of(LongReplayDetector(), batches(100, replayed=NAN)) == []


def test_versions_count_from_when_the_state_was_loaded_where_no_snapshot_was_made_since() -> None:
    (symptom,) = symptoms_of(LongReplayDetector(), replayed_once(100, snapshot_version=-1.0))

    assert symptom.evidence.figures()["changelogs"] == 99.0


# Snapshots


def test_snapshots_that_are_not_uploaded_for_long_are_symptoms_of() -> None:
    (symptom,) = symptoms_of(SnapshotLagDetector(), batches(80, snapshot_version=10.0))

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
    assert symptoms_of(SnapshotLagDetector(), observed) == []


def test_a_repaired_snapshot_is_reported_for_an_hour() -> None:
    repaired = np.zeros(2 * HOUR)
    repaired[5] = 2.0

    (symptom,) = symptoms_of(SnapshotRepairedDetector(), batches(HOUR, repaired=repaired[:HOUR]))

    assert (symptom.kind, symptom.evidence.figures()["snapshots_repaired"]) == (SNAPSHOT_REPAIRED, 2.0)
    assert symptoms_of(SnapshotRepairedDetector(), batches(2 * HOUR, repaired=repaired)) == []


def test_a_backend_that_cannot_be_repartitioned_is_reported() -> None:
    (symptom,) = symptoms_of(FixedStateDetector(), batches(backend="hdfs"))

    assert (symptom.kind, symptom.evidence.figures()["backend"]) == (FIXED_STATE, "hdfs")


def test_of_several_operators_the_one_that_is_worst_off_is_named() -> None:
    def with_two(one: Observation) -> Observation:
        state = one.states["stateStoreSave"]
        return replace(one, states={**one.states, "dedupe": replace(state, memory_bytes=950 * MIB)})

    (symptom,) = symptoms_of(StateMemoryDetector(), [with_two(one) for one in full(memory_bytes=850 * MIB)])

    assert symptom.evidence.figures()["operator"] == "dedupe"
