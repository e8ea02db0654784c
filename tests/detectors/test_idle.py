"""Idleness, in the presence of noise, peaks and missing metrics."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Observation
from homeostat.core.symptoms import IDLE, UNKNOWN
from homeostat.detectors.idle import IdleDetector
from homeostat.testing import blanked, view_of
from support.utilisation import CAPACITY_PER_S, alarms_in_calm, noisy, planned_by_risk, stage


def idle(observed: Sequence[Observation]) -> list[Symptom]:
    return list(IdleDetector().detect(view_of(observed)))


@pytest.mark.slow
def test_noise_alone_is_never_idleness() -> None:
    """One of the two instances would not do."""
    assert alarms_in_calm().count(IDLE) == 0


def test_a_load_that_fewer_instances_could_take_is_idle() -> None:
    (symptom,) = idle(stage([0.2 * CAPACITY_PER_S] * 40, 4))

    assert (symptom.kind, symptom.component) == (IDLE, "split")
    assert symptom.severity == pytest.approx(0.8)
    assert symptom.evidence.figures()["utilisation"] == pytest.approx(0.2)
    assert symptom.evidence.figures()["instances"] == 4.0


@pytest.mark.parametrize("utilisation", [0.74, 0.8, 1.3])
def test_a_load_that_one_instance_less_could_not_take_is_not_idle(utilisation: float) -> None:
    assert idle(stage([utilisation * CAPACITY_PER_S] * 60, 4)) == []


@pytest.mark.parametrize("seed", range(3))
def test_a_small_fall_is_reported_sooner_where_instances_come_back_without_a_pause(seed: int) -> None:
    arrivals = noisy(seed, np.array([0.65] * 120 + [0.5] * 60), sigma=0.1)

    def looks_until_idle(live: bool) -> int:
        views = (planned_by_risk(stage(arrivals[: 120 + count], 10), live=live) for count in range(1, 61, 3))
        return next((count for count, view in enumerate(views) if list(IdleDetector().detect(view))), 60)

    assert looks_until_idle(live=True) < looks_until_idle(live=False)


def test_one_instance_is_never_idle() -> None:
    assert idle(stage([0.01 * CAPACITY_PER_S] * 60, 1)) == []


def test_a_quiet_moment_is_not_idleness() -> None:
    assert idle(stage([0.8 * CAPACITY_PER_S] * 60 + [0.2 * CAPACITY_PER_S] * 2, 4)) == []


def test_a_load_with_peaks_that_need_all_is_not_idle() -> None:
    quiet = noisy(1, np.full(68, 0.1))
    peaks = np.where(np.arange(68) % 10 == 5, 0.95 * CAPACITY_PER_S, quiet)

    assert [s.kind for s in idle(stage(quiet, 4))] == [IDLE]
    assert idle(stage(peaks, 4)) == []


@pytest.mark.parametrize("column", ["rows", "run_s", "pending_rows", "pressured_s", "arrival_per_s"])
@pytest.mark.parametrize("ago", [1, 4])
def test_idleness_is_never_claimed_on_incomplete_data(column: str, ago: int) -> None:
    observed = stage([0.1 * CAPACITY_PER_S] * 40, 4)
    hurt = blanked(observed[: len(observed) - ago + 1], column, last=1) + observed[len(observed) - ago + 1 :]

    assert {s.kind for s in idle(hurt)} == {UNKNOWN}


@pytest.mark.parametrize("component", ["lines", "split"])
def test_one_number_of_one_instance_is_enough_to_be_unsure(component: str) -> None:
    observed = list(stage([0.1 * CAPACITY_PER_S] * 40, 4))
    sample = observed[-3].tasks[component]
    rows = np.where(np.arange(sample.instances) == 0, NAN, sample.rows)
    observed[-3] = replace(observed[-3], tasks={**observed[-3].tasks, component: replace(sample, rows=rows)})

    assert {s.kind for s in idle(observed)} == {UNKNOWN}


def test_a_whole_observation_missing_is_enough_to_be_unsure() -> None:
    observed = stage([0.1 * CAPACITY_PER_S] * 40, 4)

    assert {s.kind for s in idle(observed[:-3] + observed[-2:])} == {UNKNOWN}
    assert [s.kind for s in idle(observed[:-20] + observed[-19:])] == [IDLE]


def test_idleness_starts_afresh_with_each_configuration() -> None:
    view = view_of(stage([0.1 * CAPACITY_PER_S] * 40, 4))
    just_changed = replace(
        view,
        history=(*(replace(d, epoch=0) for d in view.history[:-2]), *view.history[-2:]),
        window=view.window.last(2),
    )

    assert not any(s.kind == IDLE for s in IdleDetector().detect(just_changed))
