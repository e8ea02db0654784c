"""The dataflow engine as its sensors show it: flow, back-pressure, faults, truth."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.configuration import PARALLELISM, SPREAD, Configuration, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply, Observed
from homeostat.core.objective import Objective
from homeostat.core.observation import Observation
from homeostat.sim.dataflow.engine import Dataflow
from homeostat.sim.scenario.spec import (
    ComponentSpec,
    DataflowSpec,
    FaultSpec,
    MicrobatchSpec,
    Noise,
    Scenario,
    WorkloadSpec,
)

SENTENCES_PER_S = 1_000_000 / 60


def word_count(flatmap: int, count: int, **changes: object) -> Scenario:
    """A million sentences a minute, 20 words each; flatmap takes 100 K a minute, count a million words."""
    scenario = Scenario(
        name="word-count",
        title="",
        engine=DataflowSpec(replayable=False),
        duration_s=3600.0,
        components=(
            ComponentSpec("source", kind="source", rate_per_s=SENTENCES_PER_S),
            ComponentSpec("flatmap", inputs=("source",), parallelism=flatmap, rate_per_s=1e5 / 60, selectivity=20.0),
            ComponentSpec("count", inputs=("flatmap",), parallelism=count, rate_per_s=1e6 / 60),
        ),
        workload=WorkloadSpec(rate_per_s=SENTENCES_PER_S),
    )
    return replace(scenario, **changes)  # type: ignore[arg-type]


def line(load_per_s: float, *operators: ComponentSpec, **changes: object) -> Scenario:
    """A source that is never the bottleneck, and operators one after the other."""
    source = ComponentSpec("lines", kind="source", rate_per_s=10_000.0)
    inputs = ["lines", *(operator.name for operator in operators)]
    chain = (replace(op, inputs=(name,)) for op, name in zip(operators, inputs, strict=False))
    scenario = Scenario(
        name="line",
        title="",
        engine=DataflowSpec(),
        duration_s=3600.0,
        components=(source, *chain),
        workload=WorkloadSpec(rate_per_s=load_per_s),
    )
    return replace(scenario, **changes)  # type: ignore[arg-type]


def ticks(engine: Dataflow, until_s: float) -> list[Observation]:
    return [event.observation for event in engine.wait(until_s) if isinstance(event, Observed)]


def last(engine: Dataflow, until_s: float) -> Observation:
    return ticks(engine, until_s)[-1]


SPLIT = ComponentSpec("split", parallelism=4, rate_per_s=100.0)
COUNT = ComponentSpec("count", parallelism=4, rate_per_s=100.0, keyed=True, keys=100_000)


@pytest.mark.parametrize(
    ("flatmap", "count", "flatmap_pressure", "count_pressure", "taken_per_minute"),
    [
        (1, 1, 0.95, 0.5, 50_000),
        (1, 2, 0.9, 0.0, 100_000),
        (5, 2, 0.9, 0.8, 100_000),
        (5, 10, 0.5, 0.0, 500_000),
        (10, 10, 0.5, 0.5, 500_000),
        (10, 20, 0.0, 0.0, 1_000_000),
    ],
)
def test_pressure_is_the_share_of_what_the_senders_could_deliver_that_is_not_taken(
    flatmap: int, count: int, flatmap_pressure: float, count_pressure: float, taken_per_minute: float
) -> None:
    observation = last(Dataflow(word_count(flatmap, count)), 600.0)
    assert observation.tasks["flatmap"].pressured_s / 10 == pytest.approx([flatmap_pressure] * flatmap, abs=1e-3)
    assert observation.tasks["count"].pressured_s / 10 == pytest.approx([count_pressure] * count, abs=1e-3)
    assert observation.tasks["source"].pressured_s.tolist() == [0.0]
    assert observation.flows[0].rows * 6 == pytest.approx(taken_per_minute, rel=1e-3)
    assert observation.flows[0].arrival_per_s == pytest.approx(SENTENCES_PER_S)


def test_rows_per_useful_second_are_the_true_rate_however_busy_an_instance_is() -> None:
    observation = last(Dataflow(word_count(5, 10)), 600.0)
    idle = last(Dataflow(line(100.0, SPLIT)), 600.0)
    for sample, rate_per_s in ((observation.tasks["flatmap"], 1e5 / 60), (idle.tasks["split"], 100.0)):
        assert sample.rows / sample.run_s == pytest.approx([rate_per_s] * sample.instances)
    assert idle.tasks["split"].run_s == pytest.approx([2.5] * 4)
    assert observation.tasks["flatmap"].rows_out == pytest.approx(observation.tasks["flatmap"].rows * 20)


def test_a_replayable_source_keeps_what_is_not_taken_and_a_generator_does_not() -> None:
    overload = line(500.0, SPLIT)
    engine = Dataflow(overload)
    first, second = last(engine, 300.0), last(engine, 400.0)
    assert second.flows[0].pending_rows - first.flows[0].pending_rows == pytest.approx(100 * 100.0)
    generator = last(Dataflow(replace(overload, engine=DataflowSpec(replayable=False))), 400.0)
    assert generator.flows[0].pending_rows == 0.0
    assert generator.flows[0].arrival_per_s == pytest.approx(500.0)
    assert generator.flows[0].rows == pytest.approx(4000.0)


def test_what_a_dataflow_does_not_have_is_unknown() -> None:
    observation = last(Dataflow(line(100.0, SPLIT)), 10.0)
    assert math.isnan(observation.flows[0].seconds)
    assert math.isnan(observation.flows[0].trigger_s)
    assert np.isnan(observation.tasks["split"].finish_s).all()


@settings(max_examples=25, deadline=None)
@given(
    rates=st.lists(st.floats(20.0, 400.0), min_size=3, max_size=3),
    selectivities=st.lists(st.floats(0.0, 3.0), min_size=3, max_size=3),
    load=st.floats(0.0, 900.0),
    hot_share=st.floats(0.0, 0.9),
    seed=st.integers(0, 9),
)
def test_no_row_is_lost_or_made_up_and_no_queue_overflows(
    rates: list[float], selectivities: list[float], load: float, hot_share: float, seed: int
) -> None:
    a, b, c = (
        ComponentSpec(name, inputs=inputs, parallelism=3, rate_per_s=rate, selectivity=selectivity, keyed=name == "b")
        for name, inputs, rate, selectivity in zip(
            "abc", (("lines",), ("a",), ("a", "b")), rates, selectivities, strict=True
        )
    )
    fault = FaultSpec("hot-key", at_s=40.0, component="b", share=hot_share)
    scenario = line(load, a, faults=(fault,), service_noise=Noise(0.2, 0.5))
    source = scenario.components[0]
    scenario = replace(scenario, components=(source, a, b, c))
    observations = ticks(Dataflow(scenario, seed), 200.0)
    served = {name: sum(float(o.tasks[name].rows.sum()) for o in observations) for name in ("lines", "a", "b", "c")}
    sent = {name: sum(float(o.tasks[name].rows_out.sum()) for o in observations) for name in ("lines", "a", "b", "c")}
    waiting = {name: float(sample.pending_rows.sum()) for name, sample in observations[-1].tasks.items()}
    arrived = sum(o.flows[0].arrival_per_s * 10 for o in observations)
    assert served["lines"] + observations[-1].flows[0].pending_rows == pytest.approx(arrived)
    assert served["a"] + waiting["a"] == pytest.approx(sent["lines"])
    assert served["b"] + waiting["b"] == pytest.approx(sent["a"])
    assert served["c"] + waiting["c"] == pytest.approx(sent["a"] + sent["b"])
    for spec in (a, b, c):
        for o in observations:
            assert (o.tasks[spec.name].pending_rows <= spec.queue_s * spec.rate_per_s * (1 + 1e-6)).all()
            assert (o.tasks[spec.name].run_s <= 10 + 1e-9).all()
            assert ((o.tasks[spec.name].pressured_s >= 0) & (o.tasks[spec.name].pressured_s <= 10 + 1e-9)).all()


def test_a_slow_instance_alone_fills_its_queue_and_holds_the_others_back() -> None:
    fault = FaultSpec("slow-instance", at_s=100.0, component="split", instance=2, factor=4.0)
    engine = Dataflow(line(300.0, SPLIT, faults=(fault,)))
    assert engine.faulty_workers() == frozenset()
    healthy, slow = last(engine, 100.0), last(engine, 400.0)
    assert healthy.tasks["split"].pressured_s.tolist() == [0.0] * 4
    assert slow.tasks["split"].rows == pytest.approx([250.0] * 4)
    assert slow.tasks["split"].rows / slow.tasks["split"].run_s == pytest.approx([100.0, 100.0, 25.0, 100.0])
    assert slow.tasks["split"].pending_rows[2] == pytest.approx(1000.0)
    assert slow.tasks["split"].pending_rows[[0, 1, 3]].max() < 50.0
    assert np.flatnonzero(slow.tasks["split"].pressured_s).tolist() == [2]
    assert engine.faulty_workers() == {"split-2#0"}


def test_a_slow_host_slows_every_process_on_it() -> None:
    fault = FaultSpec("slow-host", host="host-1", factor=2.0, until_s=50.0)
    engine = Dataflow(line(100.0, SPLIT, COUNT, faults=(fault,)))
    observation = last(engine, 20.0)
    slow = {
        worker
        for worker, host in zip(observation.workers.ids, observation.workers.hosts, strict=True)
        if host == "host-1"
    }
    assert engine.faulty_workers() == slow == {"split-0#0", "count-0#0"}
    rate = observation.tasks["split"].rows / observation.tasks["split"].run_s
    assert rate == pytest.approx([50.0, 100.0, 100.0, 100.0])
    engine.wait(60.0)
    assert engine.faulty_workers() == frozenset()


def test_a_hot_key_is_held_by_one_instance_until_it_is_spread() -> None:
    fault = FaultSpec("hot-key", component="count", share=0.7)
    engine = Dataflow(line(200.0, SPLIT, COUNT, faults=(fault,)))
    skewed = last(engine, 600.0).tasks["count"]
    hot = int(skewed.rows.argmax())
    share = 0.7 + 0.3 / 4
    assert skewed.rows[hot] == pytest.approx(1000.0)
    assert skewed.rows.sum() == pytest.approx(1000.0 / share, rel=0.02)
    assert np.flatnonzero(skewed.pressured_s).tolist() == [hot]
    spread = Configuration({Knob(SPREAD, "count"): 4})
    engine.apply(Apply("spread", 600.0, spread, (), 60.0))
    even = last(engine, 900.0).tasks["count"]
    assert even.rows == pytest.approx([even.rows.mean()] * 4)
    assert even.rows.sum() == pytest.approx(2000.0)
    assert even.rows / even.run_s == pytest.approx([95.0] * 4)


def test_after_a_turn_another_key_is_hot() -> None:
    fault = FaultSpec("hot-key", component="count", share=0.7)
    engine = Dataflow(line(50.0, SPLIT, replace(COUNT, turn_s=100.0), faults=(fault,)))
    hot = [int(tick.tasks["count"].rows.argmax()) for tick in ticks(engine, 1000.0)]
    turns = [set(hot[start + 1 : start + 10]) for start in range(0, 100, 10)]
    assert all(len(turn) == 1 for turn in turns)
    assert len(set.union(*turns)) > 2


def test_a_hash_imbalance_leaves_instances_without_rows() -> None:
    fault = FaultSpec("hash-imbalance", component="count", stride=4, at_s=50.0, until_s=100.0)
    engine = Dataflow(line(80.0, SPLIT, COUNT, faults=(fault,)))
    before, during, after = (last(engine, t).tasks["count"].rows for t in (50.0, 100.0, 150.0))
    assert [np.count_nonzero(rows > 1) for rows in (before, during, after)] == [4, 1, 4]


def test_a_crashed_process_shows_nothing_and_stops_its_senders() -> None:
    fault = FaultSpec("crash", at_s=50.0, until_s=300.0, component="split", instance=1)
    engine = Dataflow(line(200.0, SPLIT, faults=(fault,)))
    observation = last(engine, 200.0)
    sample = observation.tasks["split"]
    for column in (sample.rows, sample.run_s, sample.rows_out, sample.pending_rows, sample.pressured_s):
        assert np.flatnonzero(np.isnan(column)).tolist() == [1]
    assert observation.flows[0].rows == 0.0
    assert [w for w, alive in zip(observation.workers.ids, observation.workers.alive, strict=True) if not alive] == [
        "split-1#0"
    ]
    assert engine.faulty_workers() == {"split-1#0"}
    recovered = last(engine, 400.0)
    assert recovered.workers.alive.all()
    assert recovered.tasks["split"].rows.min() > 0


def test_a_stuck_sink_stops_everything_before_it() -> None:
    fault = FaultSpec("stuck-sink", at_s=50.0, until_s=400.0)
    engine = Dataflow(line(200.0, SPLIT, COUNT, faults=(fault,)))
    stuck = last(engine, 400.0)
    assert [stuck.flows[0].rows, stuck.tasks["split"].rows.sum(), stuck.tasks["count"].rows.sum()] == [0, 0, 0]
    assert stuck.tasks["count"].pressured_s.max() == pytest.approx(10.0)
    assert not engine.truth[-1].healthy
    assert last(engine, 500.0).flows[0].rows > 2000.0


def test_metric_faults_change_what_is_seen_and_not_what_happens() -> None:
    faults = (FaultSpec("metric-gap", share=0.4), FaultSpec("garbage-metrics", share=0.2, at_s=100.0))
    blind, clear = Dataflow(line(300.0, SPLIT, faults=faults)), Dataflow(line(300.0, SPLIT))
    observations = ticks(blind, 300.0)
    clear.wait(300.0)
    assert any(np.isnan(o.tasks["split"].rows).any() for o in observations)
    assert [o.batch for o in observations] == list(range(30))
    assert [o.at_s for o in observations] == [10.0 * (n + 1) for n in range(30)]
    assert blind.truth == clear.truth


def test_truth_tells_load_health_and_the_smallest_parallelism() -> None:
    scenario = word_count(1, 1, workload=WorkloadSpec(kind="steps", steps=((0.0, SENTENCES_PER_S), (100.0, 1.0))))
    engine = Dataflow(scenario)
    engine.wait(400.0)
    loaded, light = engine.truth[9], engine.truth[-1]
    names = ("source", "flatmap", "count")
    assert [loaded.needed[Knob(PARALLELISM, name)] for name in names] == [1, 10, 20]
    assert [light.needed[Knob(PARALLELISM, name)] for name in names] == [1, 1, 1]
    assert [loaded.values[Knob(PARALLELISM, name)] for name in names] == [1, 1, 1]
    assert (loaded.healthy, light.healthy) == (False, True)
    assert loaded.arrival_per_s == pytest.approx(SENTENCES_PER_S)
    assert light.taken_per_s == pytest.approx(1.0)


def test_a_backlog_is_unhealthy_until_less_than_a_tick_of_it_is_left() -> None:
    steps = WorkloadSpec(kind="steps", steps=((0.0, 200.0), (100.0, 900.0), (200.0, 200.0)))
    engine = Dataflow(line(0.0, SPLIT, workload=steps))
    engine.wait(900.0)
    assert engine.truth[5].healthy
    backlog = [sample for sample in engine.truth if not sample.healthy]
    assert all(sample.pending_rows > sample.arrival_per_s * 10 for sample in backlog)
    assert backlog[-1].at_s > 300.0
    assert engine.truth[-1].healthy


def test_a_throughput_objective_decides_what_is_healthy_and_needed() -> None:
    scenario = line(900.0, SPLIT, objective=Objective(throughput_per_s=350.0))
    engine = Dataflow(replace(scenario, engine=DataflowSpec(replayable=False)))
    engine.wait(300.0)
    assert engine.truth[-1].healthy
    assert engine.truth[-1].needed[Knob(PARALLELISM, "split")] == 4


def test_the_key_shares_count_in_what_is_needed() -> None:
    few_keys = replace(COUNT, keys=50)
    engine = Dataflow(line(390.0, SPLIT, few_keys))
    engine.wait(10.0)
    assert engine.truth[0].needed[Knob(PARALLELISM, "split")] == 4
    assert engine.truth[0].needed[Knob(PARALLELISM, "count")] > 4


def test_the_same_seed_gives_the_same_run_to_the_bit_however_time_is_cut() -> None:
    noise = Noise(0.15, 0.7)
    scenario = line(380.0, SPLIT, COUNT, service_noise=noise, workload=WorkloadSpec(rate_per_s=380.0, noise=noise))
    whole, cut, other = Dataflow(scenario, 3), Dataflow(scenario, 3), Dataflow(scenario, 4)
    one = ticks(whole, 300.0)
    two = [o for t in np.linspace(0.7, 300.0, 97) for o in ticks(cut, float(t))]
    other.wait(300.0)
    assert whole.truth == cut.truth != other.truth
    for a, b in zip(one, two, strict=True):
        for name in a.tasks:
            assert a.tasks[name].run_s.tobytes() == b.tasks[name].run_s.tobytes()


def test_service_noise_of_one_component_does_not_depend_on_the_others() -> None:
    noise = Noise(0.15, 0.7)
    alone = ticks(Dataflow(line(50.0, SPLIT, service_noise=noise)), 100.0)
    with_count = ticks(Dataflow(line(50.0, SPLIT, COUNT, service_noise=noise)), 100.0)
    rates = [
        [float(o.tasks["split"].rows[0] / o.tasks["split"].run_s[0]) for o in observations]
        for observations in (alone, with_count)
    ]
    assert rates[0] == pytest.approx(rates[1])
    assert len({round(rate, 6) for rate in rates[0]}) == 10


def test_several_sources_share_the_load() -> None:
    components = (
        ComponentSpec("left", kind="source"),
        ComponentSpec("right", kind="source"),
        ComponentSpec("join", inputs=("left", "right")),
    )
    engine = Dataflow(line(300.0, components=components))
    observation = last(engine, 60.0)
    assert [flow.source for flow in observation.flows] == ["left", "right"]
    assert [flow.arrival_per_s for flow in observation.flows] == pytest.approx([150.0, 150.0])
    assert observation.tasks["join"].rows.sum() == pytest.approx(3000.0)


@pytest.mark.parametrize(
    ("scenario", "message"),
    [
        (line(1.0, replace(SPLIT, rate_per_s=-5.0)), "component 'split': rate_per_s must be above 0, not -5"),
        (line(1.0, replace(SPLIT, rate_per_s=math.inf)), "component 'split': rate_per_s must be above 0, not inf"),
        (line(1.0, replace(SPLIT, selectivity=-1.0)), "component 'split': selectivity must be 0 or more, not -1"),
        (line(1.0, replace(SPLIT, parallelism=0)), "component 'split': parallelism must be between"),
        (line(1.0, replace(SPLIT, queue_s=0.5)), "component 'split': queue_s .0.5. is shorter than a step"),
        (line(1.0, components=(SPLIT,)), "component 'split': an operator needs inputs"),
        (line(1.0, components=(replace(SPLIT, kind="source", inputs=("x",)),)), "a source cannot have inputs"),
        (
            line(1.0, components=(*line(1.0).components, replace(SPLIT, inputs=("lnies",)))),
            "reads 'lnies', which no earlier component provides",
        ),
        (line(1.0, components=()), "no component is a source"),
        (line(1.0, SPLIT, workload=WorkloadSpec(rate_per_s=-1.0)), "workload: rate_per_s must be 0 or more, not -1"),
        (line(1.0, SPLIT, faults=(FaultSpec("crash", component="x"),)), "unknown component 'x'"),
        (line(1.0, SPLIT, faults=(FaultSpec("crash"),)), "a crash fault needs a component"),
        (line(1.0, SPLIT, faults=(FaultSpec("slow-host", host="moon"),)), "unknown host 'moon'"),
        (line(1.0, SPLIT, engine=MicrobatchSpec()), "not for the dataflow engine"),
        (line(1.0, SPLIT, engine=DataflowSpec(hosts=0)), "hosts must be 1 or more, not 0"),
        (line(1.0, SPLIT, engine=DataflowSpec(tick_s=10.0, step_s=3.0)), "not a multiple of step_s"),
        (line(1.0, SPLIT, engine=DataflowSpec(redeploy_s=-1.0)), "redeploy_s must be 0 or more, not -1"),
        (line(1.0, SPLIT, service_noise=Noise(sigma=-1.0)), "impossible noise: sigma = -1"),
    ],
)
def test_an_impossible_scenario_is_refused_in_one_line(scenario: Scenario, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as caught:
        Dataflow(scenario)
    assert "\n" not in caught.value.line
