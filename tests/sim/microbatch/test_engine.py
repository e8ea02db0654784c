"""The micro-batch engine left alone: batches, triggers, admission, sensors, noise and truth."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from homeostat.core.configuration import (
    EXECUTORS,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    TRIGGER_S,
    Knob,
)
from homeostat.core.engine import Engine
from homeostat.core.errors import ConfigError
from homeostat.core.events import Event, Observed
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.microbatch.stages import busy_executors
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    WorkloadSpec,
)

APP = Knob(EXECUTORS, "app")
ENGINE = MicrobatchSpec(executors=2, slots=2, warm_up=1.0)
LINES = ComponentSpec("lines", kind="source", parallelism=4, rate_per_s=1000.0, task_s=0.1)
SPLIT = ComponentSpec("split", inputs=("lines",), parallelism=8, rate_per_s=500.0, task_s=0.05, selectivity=2.0)
COUNT = ComponentSpec(
    "count",
    inputs=("split",),
    parallelism=4,
    rate_per_s=1000.0,
    task_s=0.2,
    keyed=True,
    keys=100_000,
    key_s=0.0,
    stateful=True,
)
SCENARIO = Scenario(
    name="word-count",
    title="",
    engine=ENGINE,
    duration_s=3600.0,
    components=(LINES, SPLIT),
    workload=WorkloadSpec(rate_per_s=400.0),
)
NOISY = replace(
    SCENARIO,
    components=(LINES, SPLIT, COUNT),
    workload=WorkloadSpec(rate_per_s=400.0, noise=Noise(0.1, 0.5)),
    service_noise=Noise(0.15, 0.7),
    engine=replace(ENGINE, straggler_share=0.05, warm_up=1.5),
)


def observations(events: Sequence[Event]) -> list[Observation]:
    return [event.observation for event in events if isinstance(event, Observed)]


def run(scenario: Scenario, seconds: float, seed: int | None = None) -> list[Observation]:
    return observations(Microbatch(scenario, seed).wait(seconds))


def started_s(observation: Observation) -> float:
    return observation.at_s - observation.flows[0].seconds


def fingerprint(batches: list[Observation]) -> list[object]:
    return [
        (o.at_s, o.batch, repr(o.flows), o.workers.ids, *[t.run_s.tobytes() for t in o.tasks.values()]) for o in batches
    ]


def test_it_says_what_it_is_and_can_do() -> None:
    engine: Engine = Microbatch(NOISY)
    described = engine.describe()

    assert described.topology.names == ("lines", "split", "count")
    assert {component.scaled_by for component in described.topology} == {APP}
    assert described.configuration.values == {
        APP: 2,
        Knob(TRIGGER_S, "main"): 10.0,
        Knob(SOURCE_PARTITIONS, "lines"): 4,
        Knob(PARALLELISM, "split"): 8,
        Knob(STATE_PARTITIONS, "main"): 4,
        Knob(SPREAD, "count"): 1,
    }
    knobs = described.capabilities.knobs
    assert set(knobs) == set(described.configuration.values)
    assert {str(knob) for knob, spec in knobs.items() if spec.live} == {"executors.app", "spread.count"}
    assert described.capabilities.cost(described.configuration) == 2.0
    assert described.capabilities.can_replace


def test_a_limit_of_rows_per_trigger_is_a_knob_where_there_is_one() -> None:
    limited = replace(SCENARIO, engine=replace(ENGINE, rows_per_trigger=500.0))

    described = Microbatch(limited).describe()

    assert described.configuration[Knob(ROWS_PER_TRIGGER, "main")] == 500
    assert not described.capabilities.knobs[Knob(ROWS_PER_TRIGGER, "main")].live


def test_a_batch_takes_driver_plus_stages_plus_commit() -> None:
    observation = run(SCENARIO, 35.0)[-1]
    flow = observation.flows[0]

    # 4,000 rows: one wave of 4 tasks with 1,000 rows each, two waves of 4 tasks with 500 rows each.
    assert flow.rows == 4000.0
    assert flow.seconds == pytest.approx(0.5 + (0.1 + 1.0) + 2 * (0.05 + 1.0) + 0.2)
    assert sum(flow.phases_s.values()) == pytest.approx(flow.seconds)
    assert flow.phases_s["addBatch"] == pytest.approx(3.2)
    assert set(flow.phases_s) == {"latestOffset", "queryPlanning", "walCommit", "addBatch", "commitOffsets"}


def test_the_sensors_show_what_spark_shows() -> None:
    observation = run(SCENARIO, 35.0)[-1]
    lines, split = observation.tasks["lines"], observation.tasks["split"]

    assert lines.rows.tolist() == [1000.0] * 4
    assert split.rows.tolist() == [500.0] * 8
    assert split.rows_out.tolist() == [1000.0] * 8
    assert split.run_s == pytest.approx(np.full(8, 1.05))
    assert split.finish_s == pytest.approx([1.05] * 4 + [2.1] * 4)
    assert np.isnan(split.pending_rows).all()
    assert np.isnan(split.pressured_s).all()
    assert observation.workers.ids == ("exec-0", "exec-1")
    assert observation.workers.hosts == ("host-0", "host-1")
    assert observation.workers.slots.tolist() == [2.0, 2.0]
    assert sorted(split.worker.tolist()) == [0] * 4 + [1] * 4
    assert observation.flows[0].arrival_per_s == pytest.approx(400.0, rel=0.01)
    assert observation.flows[0].pending_rows == pytest.approx(400.0 * observation.flows[0].seconds, abs=1.0)


def test_batches_start_on_the_trigger_and_are_numbered() -> None:
    batches = run(SCENARIO, 60.0)

    assert [o.batch for o in batches] == list(range(len(batches)))
    assert [started_s(o) for o in batches] == pytest.approx([0.0, 10.0, 20.0, 30.0, 40.0, 50.0])
    assert sum(o.span_s for o in batches) == pytest.approx(batches[-1].at_s)


def test_after_a_batch_that_took_too_long_the_next_one_starts_at_once() -> None:
    batches = run(replace(SCENARIO, workload=WorkloadSpec(rate_per_s=1500.0)), 60.0)
    late = [(before, after) for before, after in pairwise(batches) if before.flows[0].seconds > 10.0]

    assert late
    assert all(started_s(after) == pytest.approx(before.at_s) for before, after in late)


def test_without_a_trigger_batches_follow_each_other() -> None:
    batches = run(replace(SCENARIO, engine=replace(ENGINE, trigger_s=0.0)), 60.0)[2:]

    assert len(batches) > 10
    assert all(started_s(after) == pytest.approx(before.at_s) for before, after in pairwise(batches))


def test_a_batch_takes_no_more_rows_than_it_may() -> None:
    batches = run(replace(SCENARIO, engine=replace(ENGINE, rows_per_trigger=1500.0)), 100.0)

    assert {o.flows[0].rows for o in batches[1:]} == {1500.0}
    assert max(o.flows[0].seconds for o in batches) < 10.0
    assert batches[-1].flows[0].pending_rows > 20_000


def test_a_trigger_with_nothing_to_do_is_seen_as_idle() -> None:
    batches = run(replace(SCENARIO, workload=WorkloadSpec(rate_per_s=0.0)), 35.0)

    assert [(o.batch, o.flows[0].rows, o.flows[0].arrival_per_s) for o in batches] == [
        (number, 0.0, 0.0) for number in range(4)
    ]
    assert all(o.flows[0].seconds == 0.5 and not o.tasks for o in batches)


def test_a_driver_that_takes_no_time_is_simulated_too() -> None:
    instant = replace(ENGINE, driver_s=0.0, commit_s=0.0, trigger_s=0.0)
    batches = run(replace(SCENARIO, engine=instant, workload=WorkloadSpec(rate_per_s=40.0)), 20.0)

    taken = sum(o.flows[0].rows for o in batches)
    assert taken + batches[-1].flows[0].pending_rows == pytest.approx(40.0 * batches[-1].at_s, abs=1.0)
    assert all(np.isfinite(o.flows[0].arrival_per_s) for o in batches)


def test_two_sources_share_the_load() -> None:
    other = replace(LINES, name="others")
    both = replace(SCENARIO, components=(LINES, other, replace(SPLIT, inputs=("lines", "others"))))

    flows = run(both, 35.0)[-1].flows

    assert [(flow.source, flow.rows) for flow in flows] == [("lines", 2000.0), ("others", 2000.0)]


def test_updated_keys_cost_time_and_are_counted() -> None:
    def last(key_s: float, keys: int) -> Observation:
        count = replace(COUNT, key_s=key_s, keys=keys)
        return run(replace(SCENARIO, components=(LINES, SPLIT, count)), 35.0)[-1]

    few, many = last(0.001, 100), last(0.001, 10**6)

    assert few.flows[0].updated_keys == pytest.approx(100, rel=0.01)
    assert many.flows[0].updated_keys == pytest.approx(8000, rel=0.01)
    free = last(0.0, 10**6)
    more_s = many.tasks["count"].run_s.sum() - free.tasks["count"].run_s.sum()
    assert more_s == pytest.approx(8.0, rel=0.01)


def test_twice_the_executors_take_half_the_time_for_many_tasks() -> None:
    many = replace(SPLIT, parallelism=512)

    def stage_s(executors: int) -> float:
        engine = replace(ENGINE, executors=executors)
        observation = run(replace(SCENARIO, components=(LINES, many), engine=engine), 60.0)[-1]
        return float(observation.tasks["split"].finish_s.max())

    assert stage_s(4) / stage_s(8) == pytest.approx(2.0, rel=0.02)


def test_the_first_tasks_of_fresh_executors_are_slower() -> None:
    batches = run(replace(SCENARIO, engine=replace(ENGINE, warm_up=1.5)), 35.0)
    first, second = batches[1].tasks["lines"].run_s, batches[2].tasks["lines"].run_s

    assert first.mean() == pytest.approx(1.5 * second.mean())


def test_stragglers_are_few_and_slow() -> None:
    many = replace(SPLIT, parallelism=400, task_s=1.0)
    engine = replace(ENGINE, straggler_share=0.1, straggler_factor=3.0, executors=50)
    run_s = run(replace(SCENARIO, components=(LINES, many), engine=engine), 40.0)[-1].tasks["split"].run_s

    assert float((run_s > 2 * np.median(run_s)).mean()) == pytest.approx(0.1, abs=0.04)


def test_each_run_has_a_level_of_its_own_and_keeps_it() -> None:
    levelled = replace(SCENARIO, engine=replace(ENGINE, run_sigma=0.2))
    usual = run(SCENARIO, 60.0)

    def level(seed: int) -> float:
        ratios = [
            observation.tasks["split"].run_s / plain.tasks["split"].run_s
            for observation, plain in zip(run(levelled, 60.0, seed=seed), usual, strict=True)
            if plain.tasks
        ]
        assert np.concatenate(ratios) == pytest.approx(ratios[0][0])
        return float(ratios[0][0])

    assert float(np.log([level(seed) for seed in range(40)]).std()) == pytest.approx(0.2, abs=0.06)


def test_tasks_crowd_each_other_where_executors_share_cores() -> None:
    def task_s(executors: int, tasks: int) -> float:
        split = replace(SPLIT, parallelism=tasks, task_s=1.0, rate_per_s=1e9, crowding=0.5)
        crowded = replace(SCENARIO, components=(LINES, split), engine=replace(ENGINE, executors=executors))
        return float(run(crowded, 30.0)[1].tasks["split"].run_s[0])

    assert task_s(1, 8) == pytest.approx(1.0, rel=1e-3)
    assert task_s(4, 8) == pytest.approx(2.5, rel=1e-3)
    assert task_s(4, 1) == pytest.approx(1.0, rel=1e-3)  # the others have nothing to do


def test_the_last_tasks_of_a_stage_have_the_cores_to_themselves() -> None:
    assert busy_executors(3, 4, slots=1).tolist() == [3, 3, 3, 1]
    assert busy_executors(2, 7, slots=2).tolist() == [2, 2, 2, 2, 1.5, 1.5, 1.5]
    assert busy_executors(5, 2, slots=1).tolist() == [2, 2]
    assert busy_executors(0, 3, slots=1).tolist() == [1, 1, 1]


@pytest.mark.slow
def test_the_same_seed_gives_the_same_run_to_the_bit() -> None:
    whole = run(NOISY, 600.0, seed=5)
    engine = Microbatch(NOISY, seed=5)
    in_parts = [o for until_s in range(0, 601, 7) for o in observations(engine.wait(float(until_s)))]

    assert fingerprint(in_parts) == fingerprint(whole)[: len(in_parts)]
    assert len(in_parts) >= len(whole) - 1
    assert fingerprint(run(NOISY, 600.0, seed=6)) != fingerprint(whole)


def test_the_noise_of_a_task_does_not_depend_on_the_executors() -> None:
    calm = replace(NOISY, engine=ENGINE, workload=WorkloadSpec(rate_per_s=100.0))
    more = replace(calm, engine=replace(ENGINE, executors=5))

    for few, many in zip(run(calm, 200.0), run(more, 200.0), strict=True):
        if few.tasks:
            assert few.tasks["split"].run_s == pytest.approx(many.tasks["split"].run_s)


def test_truth_is_healthy_while_the_load_is_taken() -> None:
    engine = Microbatch(SCENARIO)
    engine.wait(300.0)

    assert all(sample.healthy for sample in engine.truth)
    assert engine.truth[-1].taken_per_s == pytest.approx(400.0, rel=0.01)
    assert engine.truth[-1].arrival_per_s == pytest.approx(400.0, rel=0.01)
    assert engine.truth[-1].values[APP] == 2


@pytest.mark.parametrize("limit", [float("inf"), 3000.0])
def test_truth_is_not_healthy_when_the_load_is_too_much(limit: float) -> None:
    overload = replace(SCENARIO, workload=WorkloadSpec(rate_per_s=2000.0))
    engine = Microbatch(replace(overload, engine=replace(ENGINE, rows_per_trigger=limit)))
    engine.wait(300.0)

    assert not any(sample.healthy for sample in engine.truth[3:])


def test_truth_counts_the_objective_as_met_once_that_much_is_taken() -> None:
    def last_healthy(objective_per_s: float) -> bool:
        limited = replace(
            SCENARIO,
            engine=replace(ENGINE, rows_per_trigger=3000.0),
            objective=Objective(throughput_per_s=objective_per_s),
        )
        engine = Microbatch(limited)
        engine.wait(300.0)
        return engine.truth[-1].healthy

    assert last_healthy(290.0)
    assert not last_healthy(390.0)


def test_fewer_tasks_that_merge_rows_of_the_same_key_send_fewer_rows() -> None:
    def counted(tasks: int, combining: float) -> tuple[float, float]:
        split = replace(SPLIT, parallelism=tasks, combining=combining)
        observation = run(replace(SCENARIO, components=(LINES, split, COUNT)), 30.0)[1]
        return float(observation.tasks["split"].rows_out.sum()), float(observation.tasks["count"].rows.sum())

    assert counted(8, 1.0) == counted(2, 1.0)
    (sent_by_8, got_from_8), (sent_by_2, got_from_2) = counted(8, 0.5), counted(2, 0.5)
    assert sent_by_2 == pytest.approx(sent_by_8 / 2)
    assert (got_from_8, got_from_2) == pytest.approx((sent_by_8, sent_by_2), abs=1)


@pytest.mark.parametrize("crowding", [0.0, 0.5])
@pytest.mark.parametrize("rate_per_s", [300.0, 1000.0, 2500.0])
def test_the_needed_executors_suffice_and_one_fewer_does_not(rate_per_s: float, crowding: float) -> None:
    components = (LINES, replace(SPLIT, parallelism=64, crowding=crowding))
    loaded = replace(SCENARIO, components=components, workload=WorkloadSpec(rate_per_s=rate_per_s))
    engine = Microbatch(loaded)
    engine.wait(15.0)
    needed = engine.truth[-1].needed[APP]

    def batch_s(executors: int) -> float:
        return run(replace(loaded, engine=replace(ENGINE, executors=executors)), 30.0)[1].flows[0].seconds

    assert batch_s(needed) <= 10.0
    assert needed == 1 or batch_s(needed - 1) > 10.0


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (replace(SCENARIO, engine=DataflowSpec()), "not for the micro-batch engine"),
        (replace(SCENARIO, engine=replace(ENGINE, executors=0)), "executors must be between 1 and"),
        (replace(SCENARIO, engine=replace(ENGINE, executors=9, grant_limit=4)), "executors must be between 1 and"),
        (replace(SCENARIO, engine=replace(ENGINE, trigger_s=-1.0)), "trigger_s must be 0 or more, not -1"),
        (replace(SCENARIO, engine=replace(ENGINE, straggler_share=2.0)), "straggler_share"),
        (replace(SCENARIO, engine=replace(ENGINE, run_sigma=-0.1)), "run_sigma"),
        (replace(SCENARIO, engine=replace(ENGINE, slots=0)), "slots must be 1 or more, not 0"),
        (replace(SCENARIO, components=(replace(LINES, rate_per_s=-1.0), SPLIT)), "'lines'"),
        (
            replace(SCENARIO, components=(LINES, replace(SPLIT, stateful=True), COUNT)),
            "have different parallelism",
        ),
        (replace(SCENARIO, faults=(FaultSpec("crash", component="split"),)), "hits an executor"),
        (replace(SCENARIO, faults=(FaultSpec("slow-host", host="host-9"),)), "host-9"),
        (replace(SCENARIO, faults=(FaultSpec("hot-key", component="cuont"),)), "cuont"),
    ],
)
def test_what_cannot_be_simulated_is_refused(wrong: Scenario, reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        Microbatch(wrong)


def test_the_loop_sees_an_event_in_the_second_in_which_it_happens() -> None:
    engine = Microbatch(SCENARIO)
    engine.wait(1.0)
    looks_s = engine.next_event_s(30.0)
    (event, *_) = engine.wait(looks_s)
    assert isinstance(event, Observed)
    assert event.observation.at_s <= looks_s < event.observation.at_s + 1.0
    assert engine.next_event_s(looks_s + 0.001) == pytest.approx(looks_s + 0.001), "nothing happens until then"
