"""The experiments have the same load, faults and settings on both engines."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.core.actions import REPLACE, SCALE_UP
from homeostat.lab.bench.twin_experiments import (
    EXPERIMENTS,
    TRIGGER_S,
    Done,
    Experiment,
    comparison_json,
    scenario_of,
    simulate_experiment,
)
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec

pytestmark = pytest.mark.slow

# About what is fitted to the word count: a millisecond a row, and half a second for the driver.
WORDCOUNT = Scenario(
    name="wordcount",
    title="as fitted",
    engine=MicrobatchSpec(trigger_s=TRIGGER_S, executors=2),
    duration_s=100.0,
    components=(
        ComponentSpec("work", "source", parallelism=12, rate_per_s=750.0, task_s=0.03, selectivity=0.3),
        ComponentSpec("count", inputs=("work",), parallelism=4, rate_per_s=50_000.0, keyed=True, stateful=True),
    ),
    workload=WorkloadSpec("constant", 1000.0),
    service_noise=Noise(0.05, 0.2),
)


def experiment(name: str) -> Experiment:
    return next(each for each in EXPERIMENTS if each.name == name)


def test_a_shorter_experiment_keeps_its_shape() -> None:
    whole = replace(experiment("E1"), duration_s=600.0, load=((0.0, 1.0), (150.0, 0.8)))
    short = whole.stretch(0.5)
    assert short.duration_s == 300.0
    assert short.load == ((0.0, 1.0), (75.0, 0.8))
    assert replace(experiment("E3"), slow_at_s=20.0).stretch(0.5).slow_at_s == 10.0
    assert short.rows_per_trigger == whole.rows_per_trigger


def test_the_simulated_experiment_has_the_load_and_the_fault_of_the_real_one() -> None:
    stepped = replace(experiment("E1"), load_per_s=1000.0, load=((0.0, 1.0), (150.0, 0.8)))
    scenario = scenario_of(WORDCOUNT, stepped)
    assert scenario.workload.steps == ((0.0, 1000.0), (150.0, 800.0))
    assert scenario.faults == ()
    assert [fault.at_s for fault in scenario_of(WORDCOUNT, experiment("E3")).faults] == [0.0]
    alone = scenario_of(WORDCOUNT, experiment("E2"))
    assert [component.parallelism for component in alone.components] == [1, 1]
    assert alone.objective.throughput_per_s == experiment("E2").throughput_per_s


def test_the_simulated_loop_heals_and_grows_in_e3_and_rests_in_e4() -> None:
    assert {REPLACE, SCALE_UP} <= set(simulate_experiment(WORDCOUNT, experiment("E3"), seed=1).kinds)
    assert simulate_experiment(WORDCOUNT, experiment("E4"), seed=1) == Done((), 3)


def test_the_commonest_of_the_seeds_stands_for_the_simulator() -> None:
    usual, rare = Done((SCALE_UP,), 5), Done((SCALE_UP, SCALE_UP), 7)
    figures = comparison_json(experiment("E1"), Done((SCALE_UP,), 6), [usual, rare, usual])
    assert figures["same_actions"]
    assert figures["same_executors"]
    assert figures["seeds_with_the_same_actions"] == 2
    assert not comparison_json(experiment("E1"), rare, [usual, rare, usual])["same_actions"]
