"""Fitting gives back what a run was made of: a simulated run, whose make is known, and parts of one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.events import Observed
from homeostat.core.observation import NAN, Observation
from homeostat.recorded_data.run import (
    RecordedBatch,
    RecordedComponent,
    RecordedExecutor,
    RecordedRun,
    RecordedTasks,
)
from homeostat.sim.fit.scenario_fit import WARMING, agreement, fit
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.microbatch.stages import crowding_factor
from homeostat.sim.scenario import catalogue
from homeostat.sim.scenario.spec import ComponentSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.scenario.toml_text import to_toml

ENGINE = MicrobatchSpec(trigger_s=10.0, executors=3, warm_up=2.0, driver_s=0.6, commit_s=0.15)
COMPONENTS = (
    ComponentSpec("scan", "source", parallelism=6, rate_per_s=400.0, selectivity=0.5, task_s=0.1),
    ComponentSpec(
        "count", inputs=("scan",), parallelism=4, rate_per_s=900.0, task_s=0.4, keyed=True, keys=500, stateful=True
    ),
)
KNOWN = Scenario(
    name="known",
    title="A run whose make is known",
    engine=ENGINE,
    duration_s=600.0,
    components=COMPONENTS,
    workload=WorkloadSpec("steps", steps=((0.0, 200.0), (200.0, 500.0), (400.0, 100.0))),
    service_noise=Noise(0.08, 0.3),
)
QUIET = replace(KNOWN, duration_s=1200.0, service_noise=Noise(0.03, 0.3))


def recorded(scenario: Scenario, seed: int = 1) -> RecordedRun:
    """What a log would tell of a simulated run."""
    engine = Microbatch(scenario, seed)
    spec = scenario.engine
    assert isinstance(spec, MicrobatchSpec)
    observed = [e.observation for e in engine.wait(scenario.duration_s) if isinstance(e, Observed)]
    return RecordedRun(
        application="a real run",
        query="count words",
        components=tuple(
            RecordedComponent(c.name, c.inputs, keyed=c.keyed, stateful=c.stateful) for c in scenario.components
        ),
        batches=tuple(_batch(o, scenario.components) for o in observed if o.flows[0].rows > 0),
        executors=tuple(RecordedExecutor(f"exec-{n}", f"host-{n}", spec.slots, -5.0) for n in range(spec.executors)),
        driver_up_s=-17.0,
        locality_wait_s=2.0,
    )


def _batch(observation: Observation, components: Sequence[ComponentSpec]) -> RecordedBatch:
    flow = observation.flows[0]
    started_s = observation.at_s - flow.seconds
    at_s = started_s + sum(seconds for phase, seconds in flow.phases_s.items() if phase in BEFORE_TASKS)
    tasks = {}
    for component in components:
        sample = observation.tasks[component.name]
        tasks[component.name] = RecordedTasks(
            rows=sample.rows,
            rows_out=sample.rows_out,
            keys=np.full(sample.instances, NAN),
            start_s=at_s + sample.finish_s - sample.run_s,
            finish_s=at_s + sample.finish_s,
            executor=np.array([observation.workers.ids[worker] for worker in sample.worker]),
        )
        at_s += float(sample.finish_s.max())
    return RecordedBatch(
        run=observation.run,
        number=observation.batch,
        started_s=started_s,
        seconds=flow.seconds,
        rows=flow.rows,
        commit_s=flow.phases_s["commitOffsets"],
        pending_rows=0.0,
        state_rows=500.0,
        tasks=tasks,
    )


BEFORE_TASKS = ("latestOffset", "queryPlanning", "walCommit")


@pytest.fixture(scope="module")
def known_run() -> RecordedRun:
    return recorded(KNOWN)


@pytest.fixture(scope="module")
def fitted(known_run: RecordedRun) -> Scenario:
    return fit(known_run).scenario


@pytest.mark.slow
def test_a_simulated_run_gives_its_costs_back(fitted: Scenario) -> None:
    scan, count = fitted.components
    assert (scan.kind, scan.inputs, scan.parallelism) == ("source", (), 6)
    assert (count.kind, count.inputs, count.parallelism) == ("operator", ("scan",), 4)
    assert scan.rate_per_s == pytest.approx(400, rel=0.1)
    assert scan.selectivity == pytest.approx(0.5, rel=0.01)
    assert count.rate_per_s == pytest.approx(900, rel=0.1)
    for component, slower_model in zip(fitted.components, COMPONENTS, strict=True):
        for rows in (100, 300, 800):
            made_s = slower_model.task_s + rows / slower_model.rate_per_s
            assert component.task_s + rows / component.rate_per_s == pytest.approx(made_s, rel=0.1)
    assert (count.keyed, count.keys, count.stateful) == (True, 500, True)


@pytest.mark.slow
def test_rows_that_tasks_merge_before_they_send_them_are_found_again() -> None:
    merging = replace(COMPONENTS[0], selectivity=2.0, combining=0.6)
    scan, _ = fit(recorded(replace(KNOWN, components=(merging, COMPONENTS[1])))).scenario.components
    assert scan.combining == pytest.approx(0.6, abs=0.01)
    assert scan.selectivity == pytest.approx(2.0, rel=0.05)


@pytest.mark.slow
def test_a_simulated_run_gives_its_engine_back(fitted: Scenario) -> None:
    engine = fitted.engine
    assert isinstance(engine, MicrobatchSpec)
    assert (engine.trigger_s, engine.executors, engine.slots, engine.hosts) == (10.0, 3, 1, 3)
    assert engine.rows_per_trigger == float("inf")
    assert engine.driver_s == pytest.approx(0.6, rel=0.05)
    assert engine.commit_s == pytest.approx(0.15)
    assert engine.warm_up == pytest.approx(2.0, rel=0.25)
    assert engine.executor_start_s == pytest.approx(12.0)
    assert engine.locality_wait_s == 2.0


def test_executors_that_begin_with_few_rows_are_not_taken_for_many_times_slower(known_run: RecordedRun) -> None:
    first, *others = known_run.batches
    tasks = {}
    for component in COMPONENTS:
        columns = first.tasks[component.name]
        left_out = 0.95 * columns.rows
        finish_s = columns.finish_s - left_out / component.rate_per_s
        tasks[component.name] = replace(columns, rows=columns.rows - left_out, finish_s=finish_s)
    engine = fit(replace(known_run, batches=(replace(first, tasks=tasks), *others))).scenario.engine
    assert isinstance(engine, MicrobatchSpec)
    assert engine.warm_up == pytest.approx(2.0, rel=0.25)


@pytest.mark.slow
def test_noise_is_as_large_as_it_was(fitted: Scenario) -> None:
    quiet = fit(recorded(replace(KNOWN, service_noise=Noise()))).scenario.service_noise
    loud = fit(recorded(replace(KNOWN, service_noise=Noise(0.3, 0.0)))).scenario.service_noise
    assert quiet.sigma < 0.02 < fitted.service_noise.sigma < 0.2 < loud.sigma < 0.45


@pytest.mark.slow
@pytest.mark.parametrize("noise", [Noise(0.03, 0.6), Noise(0.15, 0.0)])
def test_four_of_five_batches_lie_between_the_simulated_percentiles(noise: Noise) -> None:
    """Also where each run lies at a level of its own."""
    run = recorded(replace(KNOWN, service_noise=noise))
    third = len(run.batches) // 3
    levels = np.repeat([0.95, 1.0, 1.05], [third, third, len(run.batches) - 2 * third])
    shifted = tuple(_slowed(batch, level) for batch, level in zip(run.batches, levels, strict=True))
    for each in (run, replace(run, batches=shifted)):
        assert fit(each).agreement.coverage == pytest.approx(0.8, abs=0.07)


@pytest.mark.slow
def test_runs_at_levels_of_their_own_are_not_taken_for_noise() -> None:
    """A policy must not see the spread between runs as one within: it would keep room for it.

    A run that was not fitted is expected to lie further out than these, which drew the middle towards themselves.
    """
    levels = (1.1, 1.0, 0.9)
    one, several = fit(recorded(QUIET)).scenario, fit(in_runs(recorded(QUIET), levels)).scenario
    assert isinstance(one.engine, MicrobatchSpec)
    assert isinstance(several.engine, MicrobatchSpec)
    assert several.service_noise.sigma < 1.3 * one.service_noise.sigma
    assert one.engine.run_sigma == 0
    assert float(np.log(levels).std()) < several.engine.run_sigma < 0.2


@pytest.mark.slow
def test_a_run_that_was_disturbed_says_little_of_the_noise_of_others() -> None:
    quiet = in_runs(recorded(QUIET), (1.0, 1.0, 1.0, 1.0))
    hit = [_slowed(b, 1.5) if b.run == "run-2" and b.number % 5 < 2 else b for b in quiet.batches]
    usual, disturbed = (fit(each).scenario.service_noise for each in (quiet, replace(quiet, batches=tuple(hit))))
    assert disturbed.sigma < 1.3 * usual.sigma


def test_a_stage_that_only_one_of_the_runs_has_is_fitted_to_that() -> None:
    runs = in_runs(recorded(KNOWN), (1.0, 1.0, 1.0, 1.0))
    plain = [
        replace(b, tasks={"scan": b.tasks["scan"]}, seconds=b.seconds - _span_s(b.tasks["count"]))
        if b.run == "run-3"
        else b
        for b in runs.batches
    ]
    last = [b for b in plain if b.run in ("run-2", "run-3")]
    scenario = fit(replace(runs, batches=tuple(last[:-3]))).scenario
    assert [c.name for c in scenario.components] == ["scan", "count"]


def _span_s(tasks: RecordedTasks) -> float:
    return float(tasks.finish_s.max() - tasks.start_s.min())


def in_runs(recorded: RecordedRun, levels: Sequence[float]) -> RecordedRun:
    """The same batches as so many runs, each slower or faster than it was."""
    parts = np.array_split(np.arange(len(recorded.batches)), len(levels))
    batches = [
        replace(_slowed(recorded.batches[number], level), run=f"run-{run}")
        for run, (part, level) in enumerate(zip(parts, levels, strict=True))
        for number in part
    ]
    return replace(recorded, batches=tuple(batches))


def _slowed(batch: RecordedBatch, factor: float) -> RecordedBatch:
    tasks = {
        name: replace(columns, finish_s=columns.start_s + factor * columns.seconds)
        for name, columns in batch.tasks.items()
    }
    return replace(batch, seconds=factor * batch.seconds, tasks=tasks)


@pytest.mark.slow
def test_what_crowding_costs_is_found_again() -> None:
    """From runs with few and with many executors; the rows of a task vary within each."""
    dearer = tuple(replace(component, crowding=0.75) for component in COMPONENTS)
    slower_model = replace(KNOWN, components=dearer)
    few, many = (replace(slower_model, engine=replace(ENGINE, executors=count)) for count in (1, 4))
    batches = tuple(
        replace(batch, run=f"run-{number}")
        for number, each in enumerate((few, many))
        for batch in recorded(each).batches
    )
    scenario = fit(replace(recorded(many), batches=batches)).scenario
    for component, original in zip(scenario.components, dearer, strict=True):
        assert component.crowding == pytest.approx(0.75, abs=0.26)
        for executors in (1, 4):
            expected = original.task_s * crowding_factor(original.crowding, executors) + 300 / original.rate_per_s
            fitted_s = component.task_s * crowding_factor(component.crowding, executors) + 300 / component.rate_per_s
            assert fitted_s == pytest.approx(expected, rel=0.12)


@pytest.mark.slow
def test_stragglers_are_distinguished_from_noise() -> None:
    engine = replace(ENGINE, straggler_share=0.04, straggler_factor=4.0)
    fitted_engine = fit(recorded(replace(KNOWN, engine=engine))).scenario.engine
    assert isinstance(fitted_engine, MicrobatchSpec)
    assert fitted_engine.straggler_share == pytest.approx(0.04, abs=0.02)
    assert fitted_engine.straggler_factor == pytest.approx(4.0, rel=0.25)


def test_a_configuration_that_was_not_fitted_is_predicted(fitted: Scenario) -> None:
    other = recorded(
        replace(KNOWN, engine=replace(ENGINE, executors=5), workload=WorkloadSpec("constant", rate_per_s=700.0)), seed=9
    )
    predicted = agreement(fitted, other)
    assert predicted.batches == len(other.batches) - WARMING
    assert predicted.median_error < 0.15
    assert 0.6 <= predicted.coverage <= 0.95


def test_the_text_is_the_scenario(fitted: Scenario) -> None:
    assert (fitted.name, fitted.title) == ("a-real-run", "As recorded: count words")
    assert catalogue.loads(to_toml(fitted)) == fitted
    bounded = replace(fitted, engine=replace(ENGINE, rows_per_trigger=5000.0), notes=("one", "two"))
    text = to_toml(bounded)
    assert text.startswith("# one\n# two\nname")
    assert catalogue.loads(text) == replace(bounded, notes=())
    with pytest.raises(ConfigError, match="steps"):
        to_toml(replace(fitted, workload=WorkloadSpec("constant", rate_per_s=1.0)))


def test_a_fitted_scenario_runs(fitted: Scenario) -> None:
    engine = Microbatch(fitted)
    assert any(isinstance(event, Observed) for event in engine.wait(300.0))


def test_a_load_that_hardly_varies_is_named() -> None:
    steady = replace(KNOWN, workload=WorkloadSpec("constant", rate_per_s=300.0), components=COMPONENTS[:1])
    scenario = fit(recorded(steady)).scenario
    assert any("scan: rows per task hardly varied" in note for note in scenario.notes)
    whole_s = scenario.components[0].task_s + 500 / scenario.components[0].rate_per_s
    assert whole_s == pytest.approx(0.1 + 500 / 400, rel=0.1)


def test_skew_is_found_again() -> None:
    skewed = replace(COMPONENTS[1], zipf=1.2)
    count = fit(recorded(replace(KNOWN, components=(COMPONENTS[0], skewed)))).scenario.components[1]
    assert count.zipf == pytest.approx(1.2, abs=0.11)


def test_too_few_batches_are_refused(known_run: RecordedRun) -> None:
    with pytest.raises(ConfigError, match="only 4 batches"):
        fit(replace(known_run, batches=known_run.batches[: WARMING + 4]))


def test_a_restart_takes_as_long_as_between_its_runs(known_run: RecordedRun) -> None:
    first, second = known_run.batches[:20], known_run.batches[20:]
    gap_s = 7.5 - (second[0].started_s - first[-1].ended_s)
    moved = tuple(replace(batch, run="run-1", started_s=batch.started_s + gap_s) for batch in second)
    engine = fit(replace(known_run, batches=(*first, *moved))).scenario.engine
    assert isinstance(engine, MicrobatchSpec)
    assert engine.restart_s == pytest.approx(7.5)
