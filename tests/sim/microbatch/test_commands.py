"""The micro-batch engine under commands: executors, replacements, restarts, receipts, and no row lost."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.configuration import (
    EXECUTORS,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    SPREAD,
    STATE_PARTITIONS,
    TRIGGER_S,
    Configuration,
    Knob,
    Value,
)
from homeostat.core.events import Apply, Event, Observed, Receipt
from homeostat.core.observation import Observation
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Noise, Scenario, WorkloadSpec
from homeostat.sim.workload import Workload

APP = Knob(EXECUTORS, "app")
STATE = Knob(STATE_PARTITIONS, "main")
SPLIT = Knob(PARALLELISM, "split")
ENGINE = MicrobatchSpec(
    executors=2, max_executors=8, executor_start_s=12.0, restart_s=5.0, warm_up=1.5, hosts=3, locality_wait_s=0.0
)
SCENARIO = Scenario(
    name="word-count",
    title="",
    engine=ENGINE,
    duration_s=3600.0,
    components=(
        ComponentSpec("lines", kind="source", parallelism=4, rate_per_s=2000.0),
        ComponentSpec("split", inputs=("lines",), parallelism=8, rate_per_s=500.0, maximum=32),
        ComponentSpec(
            "count", inputs=("split",), parallelism=6, rate_per_s=1000.0, keyed=True, stateful=True, maximum=64
        ),
    ),
    workload=WorkloadSpec(rate_per_s=200.0),
)


def order(
    command_id: str,
    values: dict[Knob, Value] | None = None,
    retire: Iterable[str] = (),
    time_limit_s: float = 120.0,
) -> Apply:
    return Apply(command_id, 0.0, Configuration(values or {}, frozenset(retire)), (), time_limit_s)


def receipts(events: Sequence[Event]) -> list[Receipt]:
    return [event for event in events if isinstance(event, Receipt)]


def observations(events: Sequence[Event]) -> list[Observation]:
    return [event.observation for event in events if isinstance(event, Observed)]


def after(scenario: Scenario, seconds: float) -> Microbatch:
    engine = Microbatch(scenario)
    engine.wait(seconds)
    return engine


def workers_of(observation: Observation, component: str) -> set[str]:
    return {observation.workers.ids[index] for index in observation.tasks[component].worker}


def test_added_executors_are_acknowledged_once_all_are_up() -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(order("grow", {APP: 5}))

    assert receipts(engine.wait(49.9)) == []
    (receipt,) = receipts(engine.wait(50.0))
    assert (receipt.command_id, receipt.at_s, receipt.applied) == ("grow", 50.0, True)
    assert receipt.configuration[APP] == 5
    observation = observations(engine.wait(75.0))[-1]
    assert observation.workers.ids == ("exec-0", "exec-1", "exec-2", "exec-3", "exec-4")
    assert observation.workers.hosts == ("host-0", "host-1", "host-2", "host-0", "host-1")
    assert workers_of(observation, "split") == set(observation.workers.ids)


def test_executors_that_come_during_a_batch_help_it() -> None:
    long = replace(SCENARIO, workload=WorkloadSpec(rate_per_s=2000.0))

    def second_batch_s(executors: int) -> float:
        engine = after(long, 12.0)
        engine.apply(order("grow", {APP: executors}))
        return observations(engine.wait(300.0))[0].flows[0].seconds

    alone_s, helped_s = second_batch_s(2), second_batch_s(8)
    assert alone_s > 40.0
    assert helped_s < 0.6 * alone_s


def test_state_stays_where_it_is_while_tasks_are_short_unless_there_is_no_locality_wait() -> None:
    def executors_with_state(locality_wait_s: float) -> int:
        engine = after(replace(SCENARIO, engine=replace(ENGINE, locality_wait_s=locality_wait_s)), 38.0)
        engine.apply(order("grow", {APP: 6}))
        return len(workers_of(observations(engine.wait(150.0))[-1], "count"))

    assert executors_with_state(3.0) == 2
    assert executors_with_state(0.0) == 6


def test_a_cluster_that_grants_less_is_reported_by_the_receipt() -> None:
    engine = after(replace(SCENARIO, engine=replace(ENGINE, grant_limit=3)), 38.0)
    engine.apply(order("grow", {APP: 5}, time_limit_s=60.0))

    (receipt,) = receipts(engine.wait(200.0))
    assert (receipt.at_s, receipt.applied) == (98.0, False)
    assert receipt.configuration[APP] == 3
    assert "3 executors are up instead of 5" in receipt.detail
    assert engine.describe().configuration[APP] == 3


def test_fewer_executors_go_at_the_end_of_the_batch_and_their_state_moves() -> None:
    engine = after(replace(SCENARIO, engine=replace(ENGINE, executors=4)), 41.0)
    before = observations(engine.wait(45.0))[-1].tasks["count"].run_s.mean()
    engine.wait(51.0)
    engine.apply(order("shrink", {APP: 2}))

    events = engine.wait(55.0)
    (receipt,), (batch,) = receipts(events), observations(events)
    assert receipt.at_s == batch.at_s
    assert receipt.configuration[APP] == 2
    assert batch.workers.ids == ("exec-0", "exec-1", "exec-2", "exec-3")
    assert workers_of(batch, "count") == {"exec-0", "exec-1"}
    moved = batch.tasks["count"].run_s.max()
    assert moved == pytest.approx(1.5 * before, rel=0.1)
    (after_it,) = observations(engine.wait(67.0))
    assert after_it.workers.ids == ("exec-0", "exec-1")
    assert after_it.tasks["count"].run_s.max() < 0.75 * moved


def test_between_batches_executors_go_at_once() -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(order("shrink", {APP: 1}))

    (receipt,) = receipts(engine.wait(38.0))
    assert receipt.applied
    assert receipt.configuration[APP] == 1


def test_a_worker_is_replaced_by_a_fresh_one_on_another_host() -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(order("heal", retire=["exec-1"]))

    during = engine.wait(49.0)
    assert receipts(during) == []
    assert observations(during)[-1].workers.ids == ("exec-0", "exec-1")
    events = engine.wait(70.0)
    (receipt,) = receipts(events)
    assert receipt.applied
    assert receipt.configuration.retired == {"exec-1"}
    assert receipt.configuration[APP] == 2
    last = observations(events)[-1]
    assert last.workers.ids == ("exec-0", "exec-2")
    assert last.workers.hosts == ("host-0", "host-2")


def test_where_nothing_more_is_granted_the_old_worker_goes_first() -> None:
    engine = after(replace(SCENARIO, engine=replace(ENGINE, grant_limit=2)), 38.0)
    engine.apply(order("heal", retire=["exec-1"]))

    (receipt,) = receipts(engine.wait(100.0))
    assert (receipt.applied, receipt.configuration[APP]) == (True, 2)
    assert observations(engine.wait(120.0))[-1].workers.ids == ("exec-0", "exec-2")


@pytest.mark.parametrize("worker", ["exec-7", "nobody"])
def test_replacing_a_worker_that_is_not_there_is_acknowledged_at_once(worker: str) -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(order("heal", retire=[worker]))

    (receipt,) = receipts(engine.wait(38.0))
    assert receipt.applied
    assert receipt.configuration.retired == {worker}
    assert observations(engine.wait(100.0))[-1].workers.ids == ("exec-0", "exec-1")


def test_a_restart_redoes_the_open_batch() -> None:
    engine = Microbatch(SCENARIO)
    before = observations(engine.wait(41.0))[-1]
    engine.apply(order("rescale", {STATE: 12, SPLIT: 16}))

    events = engine.wait(52.0)
    (receipt,), (redone, *_) = receipts(events), observations(events)
    assert receipt.at_s == pytest.approx(46.0)
    assert receipt.configuration[STATE] == 12
    assert receipt.configuration[SPLIT] == 16
    assert redone.batch == before.batch + 1
    assert redone.run != before.run
    assert redone.flows[0].rows == 2000.0
    assert redone.at_s - redone.flows[0].seconds == pytest.approx(46.0)
    assert (redone.tasks["count"].instances, redone.tasks["split"].instances) == (12, 16)


def test_several_knobs_need_one_restart() -> None:
    engine = after(replace(SCENARIO, engine=replace(ENGINE, rows_per_trigger=5000.0)), 38.0)
    new: dict[Knob, Value] = {
        Knob(TRIGGER_S, "main"): 5.0,
        Knob(ROWS_PER_TRIGGER, "main"): 900,
        Knob(SOURCE_PARTITIONS, "lines"): 2,
        Knob(SPREAD, "count"): 2,
    }
    engine.apply(order("tune", new))

    events = engine.wait(70.0)
    (receipt,) = receipts(events)
    assert receipt.at_s == pytest.approx(43.0)
    assert {knob: receipt.configuration[knob] for knob in new} == new
    last = observations(events)[-1]
    assert (last.flows[0].trigger_s, last.flows[0].rows, last.tasks["lines"].instances) == (5.0, 900.0, 2)
    assert {observation.run for observation in observations(events)} == {"run-1"}


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({APP: 9}, "outside its bounds 1 to 8"),
        ({APP: 0}, "outside its bounds"),
        ({APP: float("nan")}, "outside its bounds"),
        ({SPLIT: 2.5}, "not a whole number"),
        ({APP: 4, SPLIT: 33}, "parallelism.split = 33 is outside"),
    ],
)
def test_a_value_out_of_bounds_changes_nothing(values: dict[Knob, Value], reason: str) -> None:
    engine = after(SCENARIO, 38.0)
    before = engine.describe().configuration
    engine.apply(order("wrong", values))

    (receipt,) = receipts(engine.wait(38.0))
    assert not receipt.applied
    assert reason in receipt.detail
    engine.wait(100.0)
    assert receipt.configuration == before == engine.describe().configuration


@pytest.mark.parametrize(
    ("values", "retire"),
    [({APP: 6}, ()), ({STATE: 12}, ()), ({}, ("exec-0",)), ({APP: 6, Knob(SPREAD, "count"): 2}, ())],
    ids=["executors", "restart", "replace", "two knobs"],
)
def test_when_time_is_up_the_old_configuration_stays(values: dict[Knob, Value], retire: Iterable[str]) -> None:
    engine = after(SCENARIO, 38.0)
    before = engine.describe().configuration
    engine.apply(order("slow", values, retire, time_limit_s=2.0))

    (receipt,) = receipts(engine.wait(40.0))
    assert (receipt.at_s, receipt.applied) == (40.0, False)
    assert "not done within 2 s" in receipt.detail
    assert receipts(engine.wait(200.0)) == []
    assert receipt.configuration == before == engine.describe().configuration
    assert observations(engine.wait(230.0))[-1].workers.ids == ("exec-0", "exec-1")


def test_a_shrink_that_waits_for_a_stuck_batch_is_called_off() -> None:
    stuck = replace(SCENARIO, faults=(FaultSpec("stuck-sink", at_s=39.0, until_s=500.0),))
    engine = after(stuck, 45.0)
    engine.apply(order("shrink", {APP: 1}, time_limit_s=60.0))

    (receipt,) = receipts(engine.wait(400.0))
    assert (receipt.applied, receipt.configuration[APP]) == (False, 2)
    assert observations(engine.wait(600.0))[-1].workers.ids == ("exec-0", "exec-1")


def test_the_same_command_again_does_nothing_and_is_acknowledged_again() -> None:
    engine = after(SCENARIO, 38.0)
    grow = order("grow", {APP: 4}, retire=["exec-0"])
    engine.apply(grow)
    engine.wait(40.0)
    engine.apply(grow)

    (first,) = receipts(engine.wait(80.0))
    engine.apply(grow)
    (again,) = receipts(engine.wait(90.0))
    assert (again.at_s, again.applied) == (80.0, True)
    assert again.configuration == first.configuration
    assert len(observations(engine.wait(150.0))[-1].workers.ids) == 4


def test_what_already_is_needs_no_time() -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(Apply("same", 38.0, engine.describe().configuration, (), 60.0))

    (receipt,) = receipts(engine.wait(38.0))
    assert receipt.applied


def test_a_second_command_waits_for_the_first() -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(order("restart", {SPLIT: 4}))
    engine.apply(order("grow", {APP: 3}))
    engine.apply(order("hasty", {APP: 4}, time_limit_s=6.0))

    done = {receipt.command_id: receipt for receipt in receipts(engine.wait(100.0))}
    assert done["restart"].at_s == pytest.approx(43.0)
    assert done["grow"].at_s == pytest.approx(55.0)
    assert not done["hasty"].applied
    assert "other commands used up the time limit" in done["hasty"].detail


def test_a_restart_asked_for_while_the_query_is_stopped_starts_it_once() -> None:
    engine = after(SCENARIO, 38.0)
    engine.apply(order("hasty", {SPLIT: 4}, time_limit_s=1.0))
    engine.wait(39.5)
    engine.apply(order("again", {SPLIT: 6}))

    events = engine.wait(100.0)
    assert [receipt.at_s for receipt in receipts(events)] == [pytest.approx(39.5 + ENGINE.restart_s)]
    assert {observation.run for observation in observations(events)} == {"run-1"}
    assert all(observation.tasks for observation in observations(events) if observation.flows[0].rows)


KNOBS = st.fixed_dictionaries(
    {},
    optional={
        APP: st.integers(1, 8),
        STATE: st.integers(1, 12),
        SPLIT: st.integers(1, 12),
        Knob(TRIGGER_S, "main"): st.sampled_from([0, 2, 10]),
        Knob(ROWS_PER_TRIGGER, "main"): st.integers(200, 5000),
        Knob(SPREAD, "count"): st.integers(1, 3),
    },
)
COMMANDS = st.lists(
    st.tuples(
        st.floats(0.1, 40.0),
        KNOBS,
        st.sets(st.integers(0, 6), max_size=2),
        st.sampled_from([3.0, 30.0, 120.0]),
    ),
    max_size=6,
)
FAULTS = st.lists(
    st.builds(
        FaultSpec,
        st.sampled_from(["crash", "slow-instance", "stuck-sink"]),
        at_s=st.floats(1.0, 100.0),
        until_s=st.floats(101.0, 140.0),
        instance=st.integers(0, 3),
    ),
    max_size=3,
).map(tuple)


@pytest.mark.slow
@settings(max_examples=40, deadline=None)
@given(COMMANDS, FAULTS, st.integers(0, 5))
def test_no_row_is_lost_or_taken_twice(
    commands: list[tuple[float, dict[Knob, Value], set[int], float]], faults: tuple[FaultSpec, ...], seed: int
) -> None:
    load = WorkloadSpec(kind="sine", rate_per_s=300.0, amplitude_per_s=200.0, period_s=90.0, noise=Noise(0.3, 0.5))
    noisy = replace(
        SCENARIO,
        workload=load,
        service_noise=Noise(0.2, 0.5),
        faults=faults,
        engine=replace(ENGINE, rows_per_trigger=3000.0, grant_limit=6, locality_wait_s=1.0),
    )
    engine = Microbatch(noisy, seed)
    events: list[Event] = []
    for number, (pause_s, values, workers, limit_s) in enumerate(commands):
        events += engine.wait(engine.now_s + pause_s)
        engine.apply(order(f"c{number}", values, [f"exec-{w}" for w in workers], limit_s))
    events += engine.wait(engine.now_s + 300.0)

    arrivals = Workload(load, seed)
    taken = 0.0
    for observation in observations(events):
        taken += observation.flows[0].rows
        arrived = arrivals.rows_between(0.0, observation.at_s)
        assert taken + observation.flows[0].pending_rows == pytest.approx(arrived, abs=1.01)
        assert (
            sum(observation.tasks["lines"].rows) == observation.flows[0].rows
            if observation.tasks
            else observation.flows[0].rows == 0
        )
    assert [observation.batch for observation in observations(events)] == list(range(len(observations(events))))
    assert engine.now_s - observations(events)[-1].at_s < 150.0
    assert len(receipts(events)) == len(commands)
    assert 1 <= engine.describe().configuration[APP] <= 6
