"""State that grows without bound, and state that only seems to."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from homeostat.core.observation import NAN, Array, Observation
from homeostat.core.symptoms import STATE_GROWS
from homeostat.detectors.state_growth import StateGrowthDetector
from support.state_batches import HOUR, MIB, SPAN_S, Numbers, batches, symptoms_of


def growing(count: int = 3 * HOUR, an_hour: float = 0.2, **other: Any) -> tuple[Observation, ...]:
    rng = np.random.default_rng(5)
    hours = np.arange(count) / HOUR
    rows = 100_000.0 * (1.0 + an_hour * hours) * np.exp(rng.normal(0.0, 0.003, count))
    return batches(count, rows=rows, **other)


def test_state_that_grows_steadily_is_found_and_it_is_said_when_it_will_have_doubled() -> None:
    (symptom,) = symptoms_of(StateGrowthDetector(), growing())

    assert (symptom.kind, symptom.component) == (STATE_GROWS, "")
    assert symptom.evidence.figures()["operator"] == "stateStoreSave"
    assert symptom.evidence.figures()["state_rows"] == pytest.approx(160_000, rel=0.03)
    assert symptom.evidence.figures()["growth_per_hour"] == pytest.approx(20_000, rel=0.1)
    assert symptom.evidence.figures()["hours_to_double"] == pytest.approx(8.0, rel=0.1)
    assert 0.5 < symptom.severity < 1.0


@pytest.mark.slow
def test_growth_that_began_an_hour_ago_is_found_though_the_state_was_steady_before() -> None:
    rows = np.concatenate([np.full(4 * HOUR, 100_000.0), 100_000.0 + 500.0 * np.arange(int(1.2 * HOUR))])

    assert [s.kind for s in symptoms_of(StateGrowthDetector(), batches(len(rows), rows=rows))] == [STATE_GROWS]
    assert symptoms_of(StateGrowthDetector(), batches(len(rows) - HOUR, rows=rows[:-HOUR])) == []


def test_batches_that_come_seldom_are_watched_for_longer() -> None:
    """One in ten minutes."""
    rare_batches = growing(8 * HOUR)[::20]

    assert [s.kind for s in symptoms_of(StateGrowthDetector(), rare_batches)] == [STATE_GROWS]
    assert symptoms_of(StateGrowthDetector(), rare_batches[:40]) == []


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
    assert symptoms_of(StateGrowthDetector(), batches(len(rows), rows=rows, load_per_s=load_per_s)) == []


@pytest.mark.slow
def test_a_state_that_follows_a_load_of_the_morning_with_delay_is_not_growing() -> None:
    """The load doubles within an hour and stays; the state, of the last two hours, needs two more to get there."""
    count = 5 * HOUR
    load = 100.0 * (1.0 + np.clip((np.arange(count) - 2 * HOUR) / HOUR, 0.0, 1.0))
    kept = np.convolve(np.concatenate([np.full(2 * HOUR, 100.0), load]), np.ones(2 * HOUR))[2 * HOUR : 2 * HOUR + count]

    observed_batches = batches(count, rows=SPAN_S * kept, load_per_s=load)

    for end in range(3 * HOUR, count, 20):
        assert symptoms_of(StateGrowthDetector(), observed_batches[:end]) == []


def test_growth_of_the_bytes_alone_is_found_too() -> None:
    """The same keys, each with a list that becomes longer."""
    size = 50 * MIB * (1.0 + 0.8 * np.arange(3 * HOUR) / HOUR)

    (symptom,) = symptoms_of(StateGrowthDetector(), batches(3 * HOUR, disk_bytes=size))

    assert symptom.evidence.figures()["state_bytes"] == pytest.approx(165 * MIB, rel=0.05)


def test_a_query_with_a_watermark_is_given_time_until_it_removes_its_first_rows() -> None:
    young = growing(3 * HOUR, removed_rows=0.0, watermark_gap_s=600.0)
    removing = growing(3 * HOUR, removed_rows=5.0, watermark_gap_s=600.0)
    old = growing(5 * HOUR, removed_rows=0.0, watermark_gap_s=600.0)

    assert [len(symptoms_of(StateGrowthDetector(), batch_list)) for batch_list in (young, removing, old)] == [0, 1, 1]


@pytest.mark.parametrize(
    ("new", "watermark_gap_s", "is_found"), [(1.0, NAN, True), (0.8, NAN, False), (1.0, 40.0, False)]
)
def test_a_key_with_each_update_is_found_within_a_dozen_batches_if_nothing_removes_any(
    new: float, watermark_gap_s: float, is_found: bool
) -> None:
    rows = np.linspace(500.0 * new, 7000.0 * new, 14)
    observed_batches = batches(14, rows=rows, updated_rows=500.0, removed_rows=0.0, watermark_gap_s=watermark_gap_s)

    symptoms = symptoms_of(StateGrowthDetector(), observed_batches)
    assert [s.kind for s in symptoms] == ([STATE_GROWS] if is_found else [])
    assert symptoms_of(StateGrowthDetector(), observed_batches[:12]) == []
