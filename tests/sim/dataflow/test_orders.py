"""The dataflow engine under commands: redeploys, replacements, receipts."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.configuration import PARALLELISM, SPREAD, Configuration, Knob, Value
from homeostat.core.engine import Engine
from homeostat.core.events import Apply, Event, Observed, Receipt
from homeostat.core.observation import Observation
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.scenario.spec import ComponentSpec, DataflowSpec, FaultSpec, Scenario, WorkloadSpec

SCENARIO = Scenario(
    name="word-count",
    title="",
    engine=DataflowSpec(redeploy_s=30.0, replace_s=10.0, hosts=3),
    duration_s=3600.0,
    components=(
        ComponentSpec("lines", kind="source", parallelism=2, rate_per_s=1000.0),
        ComponentSpec("split", inputs=("lines",), parallelism=3, rate_per_s=100.0, maximum=10),
        ComponentSpec("count", inputs=("split",), parallelism=3, rate_per_s=100.0, keyed=True, keys=100_000),
    ),
    workload=WorkloadSpec(rate_per_s=150.0),
)
SPLIT, COUNT = Knob(PARALLELISM, "split"), Knob(PARALLELISM, "count")


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


def workers(engine: Dataflow) -> dict[str, str]:
    """Every process and its host, as the next tick shows them."""
    sample = observations(engine.wait(engine.now_s + 10.0))[-1].workers
    return dict(zip(sample.ids, sample.hosts, strict=True))


def test_it_says_what_it_is_and_can_do() -> None:
    engine: Engine = Dataflow(SCENARIO)
    described = engine.describe()
    assert described.topology.names == ("lines", "split", "count")
    assert [c.scaled_by for c in described.topology] == [Knob(PARALLELISM, n) for n in described.topology.names]
    assert [c.keyed for c in described.topology] == [False, False, True]
    assert described.configuration.as_json() == {
        "parallelism.count": 3,
        "parallelism.lines": 2,
        "parallelism.split": 3,
        "spread.count": 1,
    }
    split, spread = described.capabilities.knobs[SPLIT], described.capabilities.knobs[Knob(SPREAD, "count")]
    assert (split.minimum, split.maximum, split.live, split.apply_s, split.cost) == (1, 10, False, 30.0, 1.0)
    assert (spread.minimum, spread.live, spread.cost) == (1, True, 0.0)
    assert described.capabilities.can_replace
    assert described.capabilities.cost(described.configuration) == 8.0
    assert (engine.now_s, described.at_s) == (0.0, 0.0)
    engine.close()


def test_processes_are_dealt_out_over_the_hosts() -> None:
    assert workers(Dataflow(SCENARIO)) == {
        "lines-0#0": "host-0",
        "lines-1#0": "host-1",
        "split-0#0": "host-2",
        "split-1#0": "host-0",
        "split-2#0": "host-1",
        "count-0#0": "host-2",
        "count-1#0": "host-0",
        "count-2#0": "host-1",
    }


def test_a_redeploy_stops_everything_and_then_runs_all_changes_at_once() -> None:
    engine = Dataflow(SCENARIO)
    engine.wait(100.0)
    engine.apply(order("up", {SPLIT: 5, COUNT: 4}))
    events = engine.wait(200.0)
    (receipt,) = receipts(events)
    assert (receipt.command_id, receipt.at_s, receipt.applied, receipt.detail) == ("up", 130.0, True, "")
    assert (receipt.configuration[SPLIT], receipt.configuration[COUNT]) == (5, 4)
    assert engine.describe().configuration == receipt.configuration
    measurements = observations(events)
    assert [o.at_s for o in measurements] == [100.0 + 10 * n for n in range(1, 11)]
    for pause in measurements[:3]:
        assert pause.flows[0].rows == 0.0
        assert pause.flows[0].arrival_per_s == pytest.approx(150.0)
        assert pause.tasks["split"].rows.tolist() == pause.tasks["split"].run_s.tolist() == [0.0] * 3
        assert np.isnan(pause.tasks["split"].pressured_s).all()
    assert measurements[2].flows[0].pending_rows == pytest.approx(30 * 150.0)
    assert [o.tasks["split"].instances for o in measurements] == [3] * 3 + [5] * 7
    assert np.isfinite(measurements[3].tasks["split"].pressured_s).all()
    assert events.index(receipt) == 3


def test_the_rows_in_the_queues_survive_a_redeploy() -> None:
    engine = Dataflow(replace(SCENARIO, workload=WorkloadSpec(kind="steps", steps=((0.0, 900.0), (100.0, 0.0)))))
    before = observations(engine.wait(100.0))[-1]
    engine.apply(order("down", {SPLIT: 2, COUNT: 7}))
    during = observations(engine.wait(130.0))[-1]
    after = observations(engine.wait(140.0))[-1]
    for name, others in (("split", after.flows[0].rows), ("count", float(after.tasks["split"].rows.sum()))):
        assert during.tasks[name].pending_rows.sum() == pytest.approx(before.tasks[name].pending_rows.sum())
        waiting = float(after.tasks[name].pending_rows.sum() + after.tasks[name].rows.sum()) - others
        assert waiting == pytest.approx(before.tasks[name].pending_rows.sum())


def test_a_command_for_what_already_is_is_acknowledged_at_once() -> None:
    engine = Dataflow(SCENARIO)
    engine.wait(15.0)
    engine.apply(order("same", {SPLIT: 3}))
    (receipt,) = receipts(engine.wait(15.0))
    assert (receipt.at_s, receipt.applied, receipt.configuration[SPLIT]) == (15.0, True, 3)
    engine.apply(order("live", {Knob(SPREAD, "count"): 2}))
    (receipt,) = receipts(engine.wait(15.0))
    assert (receipt.at_s, receipt.applied, receipt.configuration[Knob(SPREAD, "count")]) == (15.0, True, 2)


def test_a_repeated_command_is_acknowledged_again_and_not_done_again() -> None:
    engine = Dataflow(SCENARIO)
    command = order("once", {SPLIT: 5}, retire=["count-0#0"])
    engine.apply(command)
    engine.apply(command)
    assert len(receipts(engine.wait(100.0))) == 1
    processes = workers(engine)
    engine.apply(command)
    (again,) = receipts(engine.wait(110.0))
    assert (again.command_id, again.at_s, again.applied) == ("once", 110.0, True)
    assert workers(engine) == processes
    assert "count-0#1" in processes


def test_an_old_command_repeated_after_a_newer_one_does_not_undo_it() -> None:
    engine = Dataflow(SCENARIO)
    old = order("old", {SPLIT: 5})
    for command in (old, order("new", {SPLIT: 4}), old):
        engine.apply(command)
        events = engine.wait(engine.now_s + 50.0)
    (again,) = receipts(events)
    assert (again.command_id, again.applied, again.configuration[SPLIT]) == ("old", True, 4)
    assert observations(events)[-1].tasks["split"].instances == 4


@pytest.mark.parametrize(
    ("values", "reason"),
    [
        ({SPLIT: 11, COUNT: 4}, "parallelism.split = 11 is outside its bounds 1 to 10"),
        ({COUNT: 0}, "parallelism.count = 0 is outside its bounds 1 to 1000"),
        ({COUNT: float("nan")}, "parallelism.count = nan is outside its bounds 1 to 1000"),
        ({COUNT: 2.5}, "parallelism.count = 2.5 is not a whole number"),
    ],
)
def test_values_outside_the_bounds_are_refused_and_change_nothing(values: dict[Knob, Value], reason: str) -> None:
    engine = Dataflow(SCENARIO)
    before = engine.describe().configuration
    engine.apply(order("bad", values, retire=["split-0#0"]))
    events = engine.wait(100.0)
    (receipt,) = receipts(events)
    assert (receipt.applied, receipt.detail, receipt.configuration) == (False, reason, before)
    assert all(o.flows[0].rows > 0 for o in observations(events))


def test_a_redeploy_that_takes_too_long_leaves_everything_as_it_was() -> None:
    engine = Dataflow(SCENARIO)
    before, processes = engine.describe().configuration, workers(engine)
    engine.apply(order("slow", {SPLIT: 5, Knob(SPREAD, "count"): 3}, ["split-1#0"], time_limit_s=20.0))
    (receipt,) = receipts(engine.wait(100.0))
    assert (receipt.at_s, receipt.applied) == (30.0, False)
    assert receipt.detail == "not done within 20 s: the previous configuration was kept"
    assert receipt.configuration == before
    assert workers(engine) == processes


def test_a_second_command_waits_for_the_first() -> None:
    engine = Dataflow(SCENARIO)
    engine.apply(order("first", {SPLIT: 5}))
    engine.wait(10.0)
    engine.apply(order("second", {COUNT: 5}))
    engine.apply(order("impatient", {COUNT: 6}, time_limit_s=15.0))
    done = {r.command_id: (r.at_s, r.applied) for r in receipts(engine.wait(200.0))}
    assert done == {"first": (30.0, True), "second": (60.0, True), "impatient": (26.0, False)}
    assert (engine.describe().configuration[SPLIT], engine.describe().configuration[COUNT]) == (5, 5)


def test_a_replacement_heals_a_slow_process_on_another_host() -> None:
    fault = FaultSpec("slow-instance", component="split", instance=1, factor=5.0)
    engine = Dataflow(replace(SCENARIO, faults=(fault,)))
    hosts = workers(engine)
    engine.wait(100.0)
    engine.apply(order("heal", retire=["split-1#0"]))
    events = engine.wait(150.0)
    (receipt,) = receipts(events)
    assert (receipt.at_s, receipt.applied) == (110.0, True)
    assert receipt.configuration.retired == {"split-1#0"}
    assert engine.faulty_workers() == frozenset()
    measurements = observations(events)
    assert measurements[0].tasks["split"].rows[1] == 0.0
    assert measurements[0].tasks["split"].pending_rows[1] == pytest.approx(1000.0)
    assert measurements[1].tasks["split"].rows[1] / measurements[1].tasks["split"].run_s[1] == pytest.approx(100.0)
    fresh = dict(zip(measurements[-1].workers.ids, measurements[-1].workers.hosts, strict=True))
    assert "split-1#0" not in fresh
    assert fresh["split-1#1"] != hosts["split-1#0"]


def test_a_replacement_does_not_heal_a_slow_host_but_leaves_it() -> None:
    fault = FaultSpec("slow-host", host="host-0", factor=5.0)
    engine = Dataflow(replace(SCENARIO, faults=(fault,)))
    assert engine.faulty_workers() == {"lines-0#0", "split-1#0", "count-1#0"}
    engine.apply(order("heal", retire=["split-1#0", "count-1#0"]))
    engine.wait(50.0)
    assert engine.faulty_workers() == {"lines-0#0"}


def test_a_crashed_process_comes_back_as_the_next_generation() -> None:
    engine = Dataflow(replace(SCENARIO, faults=(FaultSpec("crash", at_s=20.0, component="count", instance=2),)))
    engine.wait(60.0)
    engine.apply(order("heal", retire=["count-2#0"]))
    observation = observations(engine.wait(100.0))[-1]
    assert observation.workers.alive.all()
    assert np.isfinite(observation.tasks["count"].rows).all()
    assert observation.workers.ids[observation.tasks["count"].worker[2]] == "count-2#1"


def test_replacing_a_worker_that_does_not_exist_does_nothing() -> None:
    engine = Dataflow(SCENARIO)
    before = workers(engine)
    engine.apply(order("ghosts", retire=["split-9#0", "split-0#7", "nobody", "-#"]))
    (receipt,) = receipts(engine.wait(10.0))
    assert receipt.applied
    assert receipt.configuration.retired == {"split-9#0", "split-0#7", "nobody", "-#"}
    assert workers(engine) == before


def test_a_worker_gone_by_scaling_down_is_never_named_again() -> None:
    engine = Dataflow(SCENARIO)
    for number, (parallelism, now_s) in enumerate([(1, 40.0), (3, 80.0), (2, 120.0), (4, 160.0)]):
        engine.apply(order(f"step-{number}", {SPLIT: parallelism}))
        engine.wait(now_s)
    names = [name for name in workers(engine) if name.startswith("split")]
    assert names == ["split-0#0", "split-1#1", "split-2#2", "split-3#0"]


def test_on_a_single_host_a_replacement_stays_there() -> None:
    engine = Dataflow(replace(SCENARIO, engine=DataflowSpec(hosts=1)))
    engine.apply(order("heal", retire=["split-1#0"]))
    engine.wait(20.0)
    assert workers(engine)["split-1#1"] == "host-0"


@settings(max_examples=25, deadline=None)
@given(
    commands=st.lists(
        st.tuples(st.integers(1, 10), st.integers(1, 6), st.floats(1.0, 60.0), st.floats(5.0, 100.0)),
        max_size=6,
    )
)
def test_every_command_is_answered_once_and_the_last_receipt_tells_what_runs(
    commands: list[tuple[int, int, float, float]],
) -> None:
    engine = Dataflow(SCENARIO)
    events: list[Event] = []
    for number, (split, spread, pause_s, time_limit_s) in enumerate(commands):
        desired: dict[Knob, Value] = {SPLIT: split, Knob(SPREAD, "count"): spread}
        engine.apply(order(f"c{number}", desired, [f"split-{number}#0"], time_limit_s))
        events += engine.wait(engine.now_s + pause_s)
    events += engine.wait(engine.now_s + 500.0)
    answers = receipts(events)
    assert sorted(r.command_id for r in answers) == sorted(f"c{n}" for n in range(len(commands)))
    observed = [(e.observation.at_s, n) for n, e in enumerate(events) if isinstance(e, Observed)]
    answered = [(e.at_s, n) for n, e in enumerate(events) if isinstance(e, Receipt)]
    times = [at_s for at_s, _ in sorted([*observed, *answered], key=lambda timed: timed[1])]
    assert times == sorted(times)
    if answers:
        assert answers[-1].configuration == engine.describe().configuration
    assert observations(events)[-1].tasks["split"].instances == engine.describe().configuration[SPLIT]
