"""Faults in the micro-batch engine, as its sensors show them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.configuration import EXECUTORS, PARALLELISM, SPREAD, Configuration, Knob, Value
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Receipt
from homeostat.core.observation import Observation
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import ComponentSpec, FaultSpec, MicrobatchSpec, Scenario, WorkloadSpec

APP = Knob(EXECUTORS, "app")
ENGINE = MicrobatchSpec(executors=4, executor_start_s=12.0, warm_up=1.0, hosts=2, locality_wait_s=0.0)
SCENARIO = Scenario(
    name="word-count",
    title="",
    engine=ENGINE,
    duration_s=3600.0,
    components=(
        ComponentSpec("lines", kind="source", parallelism=8, rate_per_s=1000.0),
        ComponentSpec(
            "count", inputs=("lines",), parallelism=16, rate_per_s=500.0, keyed=True, keys=100_000, stateful=True
        ),
    ),
    workload=WorkloadSpec(rate_per_s=400.0),
)


def with_fault(*faults: FaultSpec) -> Scenario:
    return replace(SCENARIO, faults=faults)


def observations(events: Sequence[Event]) -> list[Observation]:
    return [event.observation for event in events if isinstance(event, Observed)]


def seen_after(engine: Microbatch, seconds: float) -> Observation:
    return observations(engine.wait(seconds))[-1]


def command(values: dict[Knob, Value], retire: frozenset[str] = frozenset()) -> Apply:
    return Apply("c", 0.0, Configuration(values, retire), (), 120.0)


def seconds_per_row(observation: Observation) -> dict[str, float]:
    """By worker, over the tasks of the counting stage."""
    tasks = observation.tasks["count"]
    per_row = tasks.run_s / tasks.rows
    return {observation.workers.ids[w]: float(np.median(per_row[tasks.worker == w])) for w in np.unique(tasks.worker)}


def test_the_time_per_row_follows_a_slow_executor_until_it_is_replaced() -> None:
    engine = Microbatch(with_fault(FaultSpec("slow-instance", at_s=25.0, instance=1, factor=4.0)))
    before = seconds_per_row(seen_after(engine, 24.0))
    assert engine.faulty_workers() == frozenset()

    slow = seconds_per_row(seen_after(engine, 60.0))
    assert slow["exec-1"] / before["exec-1"] == pytest.approx(4.0, rel=0.05)
    assert slow["exec-0"] / before["exec-0"] == pytest.approx(1.0, rel=0.05)
    assert engine.faulty_workers() == {"exec-1"}

    engine.apply(command({}, frozenset({"exec-1"})))
    healed = seconds_per_row(seen_after(engine, 120.0))
    assert set(healed) == {"exec-0", "exec-2", "exec-3", "exec-4"}
    assert max(healed.values()) / min(healed.values()) < 1.1
    assert engine.faulty_workers() == frozenset()


def test_a_slow_executor_recovers_when_its_fault_ends() -> None:
    fault = FaultSpec("slow-instance", at_s=25.0, until_s=55.0, component="app", instance=1)
    engine = Microbatch(with_fault(fault))
    engine.wait(40.0)
    assert engine.faulty_workers() == {"exec-1"}

    healed = seconds_per_row(seen_after(engine, 80.0))
    assert max(healed.values()) / min(healed.values()) < 1.1


def test_a_slow_host_slows_every_executor_on_it() -> None:
    engine = Microbatch(with_fault(FaultSpec("slow-host", at_s=25.0, host="host-1", factor=3.0)))
    slow = seconds_per_row(seen_after(engine, 60.0))

    assert engine.faulty_workers() == {"exec-1", "exec-3"}
    assert slow["exec-1"] / slow["exec-0"] == pytest.approx(3.0, rel=0.1)
    assert slow["exec-3"] / slow["exec-2"] == pytest.approx(3.0, rel=0.1)


def test_a_hot_key_makes_one_partition_large_until_it_is_spread() -> None:
    engine = Microbatch(with_fault(FaultSpec("hot-key", at_s=25.0, component="count", share=0.5)))
    calm = seen_after(engine, 24.0).tasks["count"]
    assert calm.rows.max() < 1.5 * np.median(calm.rows)

    hot = seen_after(engine, 60.0)
    tasks = hot.tasks["count"]
    assert tasks.rows.max() / tasks.rows.sum() == pytest.approx(0.53, abs=0.02)
    assert int(tasks.run_s.argmax()) == int(tasks.rows.argmax())
    assert hot.tasks["lines"].rows.max() == hot.tasks["lines"].rows.min()

    engine.apply(command({Knob(SPREAD, "count"): 8}))
    spread = seen_after(engine, 90.0)
    assert spread.tasks["count"].rows.max() < 0.2 * tasks.rows.max()
    assert spread.flows[0].seconds < 0.8 * hot.flows[0].seconds


def test_after_a_turn_another_key_is_hot_and_known_to_be_as_hot() -> None:
    scenario = with_fault(FaultSpec("hot-key", component="count", share=0.5))
    lines, count = scenario.components
    engine = Microbatch(replace(scenario, components=(lines, replace(count, turn_s=120.0))))
    batches = [one for one in observations(engine.wait(1200.0)) if "count" in one.tasks]
    assert len({int(one.tasks["count"].rows.argmax()) for one in batches}) > 3
    assert {round(one.keys["count"].share, 2) for one in batches} == {0.5}


def test_spreading_keys_costs_a_little_where_nothing_is_hot() -> None:
    engine = Microbatch(SCENARIO)
    before = seen_after(engine, 39.0).tasks["count"]
    engine.apply(command({Knob(SPREAD, "count"): 2}))
    after = seen_after(engine, 79.0).tasks["count"]

    assert after.rows.sum() == before.rows.sum()
    assert 1.02 < after.run_s.sum() / before.run_s.sum() < 1.06


def test_an_imbalanced_hash_leaves_partitions_empty() -> None:
    engine = Microbatch(with_fault(FaultSpec("hash-imbalance", at_s=25.0, component="count", stride=4)))
    rows = seen_after(engine, 60.0).tasks["count"].rows

    assert int((rows > 0).sum()) == 4
    assert rows.sum() == 4000.0


def crash(**fault: float) -> FaultSpec:
    return FaultSpec("crash", at_s=41.9, until_s=fault.get("until_s", float("inf")), instance=2)


def test_a_crash_makes_the_batch_longer_and_a_fresh_executor_comes() -> None:
    whole_s = seen_after(Microbatch(SCENARIO), 49.0).flows[0].seconds
    engine = Microbatch(with_fault(crash()))
    engine.wait(40.0)

    events = engine.wait(49.0)
    (lost,) = [event for event in events if isinstance(event, EngineChanged)]
    assert (lost.at_s, lost.configuration[APP]) == (41.9, 3)
    assert "exec-2 on host-0 was lost" in lost.reason
    (batch,) = observations(events)
    assert batch.flows[0].seconds > whole_s + 0.5
    assert batch.flows[0].rows == batch.tasks["lines"].rows.sum() == 4000.0
    assert dict(zip(batch.workers.ids, batch.workers.alive.tolist(), strict=True)) == {
        "exec-0": True,
        "exec-1": True,
        "exec-3": True,
        "exec-2": False,
    }
    assert engine.faulty_workers() == {"exec-2"}

    events = engine.wait(70.0)
    (back,) = [event for event in events if isinstance(event, EngineChanged)]
    assert back.at_s == pytest.approx(53.9)
    assert back.configuration[APP] == 4
    assert observations(events)[-1].workers.ids == ("exec-0", "exec-1", "exec-3", "exec-4")
    assert engine.faulty_workers() == frozenset()


def test_a_crashed_executor_may_stay_away_longer() -> None:
    engine = Microbatch(with_fault(crash(until_s=90.0)))

    assert seen_after(engine, 89.0).workers.alive.sum() == 3
    assert seen_after(engine, 120.0).workers.alive.sum() == 4


def test_replacing_a_crashed_executor_is_acknowledged_at_once() -> None:
    engine = Microbatch(with_fault(crash()))
    engine.wait(43.0)
    engine.apply(command({}, frozenset({"exec-2"})))

    (receipt,) = [event for event in engine.wait(43.0) if isinstance(event, Receipt)]
    assert receipt.applied
    assert seen_after(engine, 120.0).workers.ids == ("exec-0", "exec-1", "exec-3", "exec-4")


def test_when_the_only_executor_crashes_the_batch_waits_for_the_next() -> None:
    alone = replace(with_fault(replace(crash(), at_s=50.3)), engine=replace(ENGINE, executors=1))
    engine = Microbatch(replace(alone, workload=WorkloadSpec(rate_per_s=100.0)))
    engine.wait(50.2)

    batch = observations(engine.wait(80.0))[0]
    assert batch.flows[0].seconds > 12.0
    assert batch.tasks["count"].rows.sum() == 1000.0
    assert np.isfinite(batch.tasks["count"].finish_s).all()


def test_a_stuck_sink_holds_the_batch_and_nothing_is_seen_meanwhile() -> None:
    engine = Microbatch(with_fault(FaultSpec("stuck-sink", at_s=42.5, until_s=100.0)))
    engine.wait(42.0)

    assert engine.wait(99.9) == ()
    batch = seen_after(engine, 108.0)
    assert batch.flows[0].seconds > 60.0
    assert batch.tasks["lines"].finish_s.max() < 3.0
    assert batch.tasks["count"].run_s.max() > 57.0
    assert batch.flows[0].pending_rows == pytest.approx(400.0 * batch.flows[0].seconds, rel=0.01)
    assert not engine.truth[-1].healthy
    assert seen_after(engine, 250.0).flows[0].seconds < 10.0


def test_a_restart_does_not_free_a_stuck_sink_but_loses_nothing() -> None:
    sink = replace(SCENARIO.components[1], name="sink", inputs=("count",), stateful=False)
    stuck = with_fault(FaultSpec("stuck-sink", at_s=42.0, until_s=200.0, component="sink"))
    engine = Microbatch(replace(stuck, components=(*SCENARIO.components, sink)))
    taken = sum(observation.flows[0].rows for observation in observations(engine.wait(60.0)))
    engine.apply(command({Knob(PARALLELISM, "sink"): 4}))

    assert observations(engine.wait(199.0)) == []
    redone, *_ = observations(engine.wait(230.0))
    assert redone.tasks["sink"].instances == 4
    assert taken + redone.flows[0].rows + redone.flows[0].pending_rows == pytest.approx(400.0 * redone.at_s, abs=1.0)


def test_lost_metrics_are_unknown_and_the_batch_is_known() -> None:
    engine = Microbatch(with_fault(FaultSpec("metric-gap", at_s=25.0, until_s=55.0, share=1.0)))
    complete, lost = seen_after(engine, 24.0), seen_after(engine, 50.0)

    assert np.isfinite(complete.tasks["count"].run_s).all()
    assert np.isnan(lost.tasks["count"].run_s).all()
    assert np.isnan(lost.flows[0].rows)
    assert lost.batch == complete.batch + 2
    assert np.isfinite(seen_after(engine, 80.0).flows[0].rows)
    assert engine.truth[-2].taken_per_s > 0


def test_garbage_metrics_reach_the_sensors_and_not_the_truth() -> None:
    engine = Microbatch(with_fault(FaultSpec("garbage-metrics", at_s=25.0, share=0.5)))
    rows = seen_after(engine, 60.0).tasks["count"].rows

    clean = (rows >= 0) & (rows < 1e6)
    assert 0 < int(clean.sum()) < len(rows)
    assert engine.truth[-1].taken_per_s == pytest.approx(400.0, rel=0.1)
