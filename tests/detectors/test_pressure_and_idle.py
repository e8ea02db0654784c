"""Too much and too little: pressure and idleness, in the presence of noise, backlogs and missing metrics."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from homeostat.core.findings import Symptom
from homeostat.core.observation import NAN, Array, Observation, TaskSample
from homeostat.core.symptoms import IDLE, PRESSURE, UNKNOWN
from homeostat.core.view import View
from homeostat.detectors.idle import IdleDetector
from homeostat.detectors.pressure import PressureDetector
from homeostat.testing import blanked, instances, observations, view_of

CAPACITY_PER_S = 200.0
SPAN_S = 10.0
SEEDS = range(20)


def stage(arrivals_per_s: Sequence[float] | Array, instances_: int = 2) -> tuple[Observation, ...]:
    """lines → split, which takes 200 rows/s and keeps in its queues what it cannot take."""
    share = np.asarray(arrivals_per_s, dtype=np.float64) * SPAN_S / instances_
    most = CAPACITY_PER_S * SPAN_S / instances_
    queue = 0.0
    taken, waiting = [], []
    for rows in share:
        done = min(queue + float(rows), most)
        queue += float(rows) - done
        taken.append(done)
        waiting.append(queue)

    def tasks(number: int) -> Mapping[str, TaskSample]:
        busy_s = taken[number] / most * SPAN_S
        split = instances([taken[number]] * instances_, busy_s, pending_rows=waiting[number])
        return {"lines": instances(share[number] * instances_, 0.5), "split": split}

    return observations(len(share), tasks, arrival_per_s=np.asarray(arrivals_per_s))


def pressure(observed: Sequence[Observation]) -> list[Symptom]:
    return list(PressureDetector().detect(view_of(observed)))


def idle(observed: Sequence[Observation]) -> list[Symptom]:
    return list(IdleDetector().detect(view_of(observed)))


def noisy(seed: int, utilisations: Sequence[float] | Array, sigma: float = 0.15, phi: float = 0.7) -> Array:
    """Arrivals at these utilisations, times log-normal AR(1) noise."""
    fresh = np.random.default_rng(seed).normal(0.0, sigma * math.sqrt(1.0 - phi**2), len(utilisations))
    logs = np.empty(len(fresh))
    value = fresh[0] / math.sqrt(1.0 - phi**2)
    for i, new in enumerate(fresh):
        value = phi * value + new if i else value
        logs[i] = value
    arrivals: Array = CAPACITY_PER_S * np.asarray(utilisations) * np.exp(logs)
    return arrivals


def measured(arrivals_per_s: Array) -> View:
    """What is left of so many observations of `stage`: its capacity is the same in all of them."""
    view = view_of(stage([0.67 * CAPACITY_PER_S] * 8))
    one = view.history[-1]
    history = tuple(
        replace(one, at_s=(i + 1) * SPAN_S, batch=i, arrival_per_s=float(a), arrivals_per_s={"lines": float(a)})
        for i, a in enumerate(arrivals_per_s)
    )
    return replace(view, history=history)


def until(view: View, count: int) -> View:
    """The same view when only so many observations had been made."""
    return replace(view, history=view.history[:count], now_s=count * SPAN_S)


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


def test_two_observations_are_too_few() -> None:
    assert pressure(stage([3.0 * CAPACITY_PER_S] * 2)) == []


@cache
def alarms_in_calm() -> tuple[str, ...]:
    """What was found in 2,000 observations of each seed at 0.67 of the capacity, looking at every twentieth."""
    found = []
    for seed in SEEDS:
        view = measured(noisy(seed, np.full(2000, 0.67)))
        for count in range(120, 2001, 20):
            then = until(view, count)
            found += [s.kind for s in (*PressureDetector().detect(then), *IdleDetector().detect(then))]
    return tuple(found)


@pytest.mark.slow
def test_noise_alone_is_hardly_ever_pressure() -> None:
    assert alarms_in_calm().count(PRESSURE) <= 2


@pytest.mark.slow
def test_noise_alone_is_never_idleness() -> None:
    """One of the two instances would not do."""
    assert alarms_in_calm().count(IDLE) == 0


@pytest.mark.slow
def test_an_overload_is_found_in_spite_of_the_noise() -> None:
    """The same noise and the same settings; 120 calm observations, then 1.2 times what can be taken."""
    found = 0
    for seed in range(100, 160):
        view = measured(noisy(seed, np.array([0.67] * 120 + [1.2] * 15)))
        found += any(True for count in range(1, 16) for _ in PressureDetector().detect(until(view, 120 + count)))

    assert found >= 57


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


def test_a_load_that_fewer_instances_could_take_is_idle() -> None:
    (symptom,) = idle(stage([0.2 * CAPACITY_PER_S] * 40, 4))

    assert (symptom.kind, symptom.component) == (IDLE, "split")
    assert symptom.severity == pytest.approx(0.8)
    assert symptom.evidence.figures()["utilisation"] == pytest.approx(0.2)
    assert symptom.evidence.figures()["instances"] == 4.0


@pytest.mark.parametrize("utilisation", [0.74, 0.8, 1.3])
def test_a_load_that_one_instance_less_could_not_take_is_not_idle(utilisation: float) -> None:
    assert idle(stage([utilisation * CAPACITY_PER_S] * 60, 4)) == []


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
