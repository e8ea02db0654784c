"""Pressure, in the presence of noise, backlogs and missing metrics."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

from homeostat.core.findings import Symptom
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.core.symptoms import PRESSURE, UNKNOWN
from homeostat.detectors.pressure import PressureDetector
from homeostat.testing import blanked, instances, observations, view_of
from support.utilisation import (
    CAPACITY_PER_S,
    alarms_in_calm,
    measured_view,
    noisy,
    planned_by_risk,
    stage,
    until,
)


def pressure(observed: Sequence[Observation]) -> list[Symptom]:
    return list(PressureDetector().detect(view_of(observed)))


def test_an_overload_is_seen_before_any_queue_is_full() -> None:
    (symptom,) = pressure(stage([0.7 * CAPACITY_PER_S] * 10 + [1.2 * CAPACITY_PER_S] * 8))

    assert (symptom.kind, symptom.component) == (PRESSURE, "split")
    assert symptom.severity == pytest.approx(1.0 - 1.0 / 1.2, rel=0.05)
    assert symptom.evidence.figures()["offered_per_s"] == pytest.approx(240.0, rel=0.02)
    assert symptom.evidence.figures()["capacity_per_s"] == pytest.approx(200.0)
    assert symptom.evidence.figures()["observations_since_onset"] == 8.0


@pytest.mark.parametrize("utilisation", [0.3, 0.9, 1.0])
def test_a_steady_load_that_just_fits_is_no_pressure(utilisation: float) -> None:
    assert pressure(stage([utilisation * CAPACITY_PER_S] * 300)) == []


def test_a_little_too_much_is_found_in_the_end() -> None:
    assert [s.component for s in pressure(stage([1.05 * CAPACITY_PER_S] * 60))] == ["split"]


def test_a_moment_of_overload_is_none() -> None:
    assert pressure(stage([0.7 * CAPACITY_PER_S] * 30 + [1.5 * CAPACITY_PER_S] + [0.7 * CAPACITY_PER_S])) == []


def test_headroom_that_is_used_up_is_pressure_where_instances_come_without_a_pause() -> None:
    """The capacity is still enough, but not for the growth that the policy plans for."""
    rising = stage(CAPACITY_PER_S * np.concatenate([np.full(300, 0.6), np.linspace(0.6, 0.93, 40)]), 10)
    (symptom,) = PressureDetector().detect(planned_by_risk(rising))
    planned = symptom.evidence.figures()["planned_utilisation"]
    assert isinstance(planned, float)
    assert planned < 0.93
    assert list(PressureDetector().detect(planned_by_risk(rising, live=False))) == []
    assert pressure(rising) == []


def test_headroom_that_is_left_is_no_pressure() -> None:
    steady = planned_by_risk(stage([0.6 * CAPACITY_PER_S] * 340, 10))
    assert list(PressureDetector().detect(steady)) == []


def test_two_observations_are_too_few() -> None:
    assert pressure(stage([3.0 * CAPACITY_PER_S] * 2)) == []


@pytest.mark.slow
def test_noise_alone_is_hardly_ever_pressure() -> None:
    assert alarms_in_calm().count(PRESSURE) == 0


@pytest.mark.slow
def test_an_overload_is_found_in_spite_of_the_noise() -> None:
    """The same noise and the same settings; 120 calm observations, then 1.2 times what can be taken."""
    detection_count = 0
    for seed in range(100, 160):
        view = measured_view(noisy(seed, np.array([0.67] * 120 + [1.2] * 15)))
        detection_count += any(
            True for count in range(1, 16) for _ in PressureDetector().detect(until(view, 120 + count))
        )

    assert detection_count >= 57


def behind_a_bottleneck() -> tuple[Observation, ...]:
    """100 rows/s arrive; split could take 200, store only 50 and holds split back, which holds lines back."""
    tasks = {
        "lines": instances(500.0, 0.5),
        "split": instances(500.0, 2.5, pressured_s=5.0),
        "store": instances(500.0, 10.0, pressured_s=5.0),
    }
    return observations(12, tasks, arrival_per_s=100.0, pending_rows=[500.0 * (i + 1) for i in range(12)])


def test_only_the_bottleneck_is_named_not_who_waits_for_it() -> None:
    symptoms = pressure(behind_a_bottleneck())

    assert [(s.kind, s.component) for s in symptoms] == [(PRESSURE, "store")]
    assert symptoms[0].severity == pytest.approx(0.5)


def held_back(pending_rows: Sequence[float]) -> tuple[Observation, ...]:
    """split holds its sender back though it could take what arrives."""
    tasks = {"lines": instances(1900.0, 0.5), "split": instances(1900.0, 9.5, pressured_s=5.0)}
    return observations(len(pending_rows), tasks, arrival_per_s=150.0, pending_rows=pending_rows)


def test_being_held_back_while_a_backlog_shrinks_is_no_trouble() -> None:
    assert pressure(held_back([9000.0 - 400.0 * i for i in range(12)])) == []


@pytest.mark.parametrize("step", [0.0, 400.0])
def test_being_held_back_while_the_backlog_stays_is_pressure(step: float) -> None:
    (symptom,) = pressure(held_back([9000.0 + step * i for i in range(12)]))

    assert (symptom.kind, symptom.component) == (PRESSURE, "split")
    assert symptom.evidence.figures()["share_held_back"] == pytest.approx(0.5)


@pytest.mark.parametrize(("catch_up_s", "trouble"), [(None, False), (300.0, True)])
def test_a_backlog_is_trouble_if_working_it_off_takes_longer_than_the_objective_allows(
    catch_up_s: float | None, trouble: bool
) -> None:
    """700 s of arrivals wait, and half of the capacity is free for them."""
    observed = observations(12, {"lines": instances(1000.0, 5.0)}, arrival_per_s=100.0, pending_rows=70_000.0)
    symptoms = list(PressureDetector().detect(view_of(observed, objective=Objective(catch_up_s=catch_up_s))))
    assert bool(symptoms) is trouble
    assert all("700" in each.evidence.summary() or "11 min 40 s" in each.evidence.summary() for each in symptoms)


def in_peaks(period: int) -> list[float]:
    return [(1.6 if i % period == period - 1 else 0.3) * CAPACITY_PER_S for i in range(60)]


def test_peaks_that_do_not_fit_are_pressure_if_there_are_too_many() -> None:
    (symptom,) = pressure(stage(in_peaks(4)))

    assert symptom.evidence.figures()["share_beyond_capacity"] == pytest.approx(0.25)
    assert symptom.evidence.figures()["offered_per_s"] == pytest.approx(1.6 * CAPACITY_PER_S, rel=0.02)
    assert pressure(stage(in_peaks(10))) == []


def test_a_load_that_has_come_down_is_no_peak() -> None:
    before, after = [1.6 * CAPACITY_PER_S] * 12, [0.3 * CAPACITY_PER_S] * 8

    assert [s.kind for s in pressure(stage(before))] == [PRESSURE]
    assert pressure(stage(before + after)) == []


@pytest.mark.parametrize(("column", "missing"), [("arrival_per_s", "arrival"), ("run_s", "rows or useful time")])
def test_pressure_is_unknown_where_a_metric_is_missing(column: str, missing: str) -> None:
    symptoms = pressure(blanked(stage([150.0] * 12), column))

    assert {s.kind for s in symptoms} == {UNKNOWN}
    assert {s.evidence.figures()["missing"] for s in symptoms} == {missing}
    assert {s.component for s in symptoms} == {"lines", "split"}


def test_there_is_nothing_to_know_where_nothing_arrives() -> None:
    assert pressure(stage([0.0] * 12)) == []


def test_batches_that_take_longer_than_their_trigger_are_pressure() -> None:
    def batches(seconds: float) -> list[Symptom]:
        run_s = (seconds - 1.5) / 2
        tasks = {
            "lines": instances([500.0] * 2, 0.5, finish_s=0.5),
            "count": instances([250.0] * 4, run_s, finish_s=2 * run_s),
        }
        flow = {"arrival_per_s": 100.0, "rows": 1000.0, "seconds": seconds, "trigger_s": 10.0}
        return pressure(observations(12, tasks, executors=2, **flow))

    assert batches(9.0) == []
    assert [(s.kind, s.component) for s in batches(12.0)] == [(PRESSURE, "count")]


def test_a_late_batch_counts_for_the_intervals_that_it_took() -> None:
    """Three times the load in one batch of two intervals is as sure as in two batches."""

    def batches(seconds: float, arrival_per_s: float) -> list[Symptom]:
        tasks = {"lines": instances([100.0] * 4, 0.1, finish_s=0.1), "split": instances([100.0] * 4, 5.0, finish_s=5.0)}
        arrivals, took_s = [100.0] * 30 + [arrival_per_s], [5.5] * 30 + [seconds]
        measured = observations(
            31, tasks, executors=4, rows=1000.0, trigger_s=10.0, arrival_per_s=arrivals, seconds=took_s
        )
        return pressure(measured)

    (symptom,) = batches(19.0, 300.0)
    assert symptom.kind == PRESSURE
    assert symptom.evidence.figures()["offered_per_s"] == pytest.approx(300.0)
    assert batches(9.0, 300.0) == []
