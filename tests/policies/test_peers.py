"""Other systems' rules: each formula by itself, each rule on one moment, and the paths they take through E7."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from homeostat.core.cycle import Trace
from homeostat.core.errors import ConfigError
from homeostat.core.findings import Prediction, Proposal
from homeostat.core.memory import ActionKey, Context, MemoryEntry
from homeostat.core.observation import NAN, Observation
from homeostat.core.policy import Policy
from homeostat.core.trial import Trial
from homeostat.policies.peers import (
    PEER_SETTINGS,
    PEERS,
    Ds2Settings,
    FlinkSettings,
    HpaSettings,
    StaticSettings,
    ds2,
    dstream,
    flink,
    heron,
    hpa,
    spark_dynamic_allocation,
    static,
)
from homeostat.policies.peers.flink import scalability, target_capacity
from homeostat.policies.peers.hpa import desired_replicas
from homeostat.policies.peers.rule import NoJudge, NoMemory
from homeostat.sim.scenario import catalogue
from homeostat.sim.simulation import RunResult, simulate

Think = Callable[..., Trace]
Tasks = Mapping[str, Mapping[str, list[float]]]


def build(name: str) -> Policy:
    return PEERS[name](peak_per_s=100.0) if name == "static" else PEERS[name]()


def wanted(trace: Trace) -> dict[str, float]:
    """The one proposal's values; nothing if there is none."""
    assert len(trace.proposals) <= 1
    return {str(knob): value for proposal in trace.proposals for knob, value in proposal.patch.values.items()}


def only(trace: Trace) -> Proposal:
    (proposal,) = trace.proposals
    return proposal


def chain(instances: int, busy_s: float, rows: float = 1000.0) -> Tasks:
    """Every component has so many instances that each take `rows` in `busy_s` of the 10 s."""
    columns = {"rows": [rows] * instances, "rows_out": [rows] * instances, "run_s": [busy_s] * instances}
    return dict.fromkeys(("source", "flatmap", "count"), columns)


def run(name: str, policy: Policy) -> RunResult:
    return simulate(catalogue.load(name), policy)


def path(result: RunResult, *components: str) -> list[tuple[float, ...]]:
    return [tuple(taken.parallelism[name] for name in components) for taken in result.trajectory]


# On E7: source 1M sentences/min, 10 flatmaps and 20 counts are the known minimum.


def test_heron_sums_and_clamps_and_over_provisions() -> None:
    result = run("E7", heron())
    assert path(result, "flatmap", "count") == [(1, 2), (5, 2), (5, 10), (25, 10), (25, 50)]


def test_ds2_sizes_everything_in_one_step() -> None:
    assert path(run("E7", ds2()), "source", "flatmap", "count") == [(1, 10, 20)]


def test_static_is_sized_once_for_the_peak() -> None:
    result = run("E8", static(peak_per_s=2e6))
    assert path(result, "source", "flatmap", "count") == [(4, 19, 11)]


def test_hpa_climbs_by_the_ratio_until_utilisation_is_on_target() -> None:
    result = run("E7", hpa())
    assert len(result.trajectory) > 5
    assert 14 <= result.final_parallelism["flatmap"] <= 16
    assert 28 <= result.final_parallelism["count"] <= 31
    assert result.healthy_since_s is not None


def test_dstream_adds_until_no_instance_is_nine_tenths_busy() -> None:
    result = run("E7", dstream())
    assert result.final_parallelism["flatmap"] in (11, 12)
    assert result.final_parallelism["count"] in (22, 23)


def test_dynamic_allocation_knows_no_rates_and_leaves_a_dataflow_as_it_is() -> None:
    assert run("E7", spark_dynamic_allocation()).trajectory == ()


# DS2


def test_ds2_propagates_what_the_sources_would_send(think: Think) -> None:
    """300 rows/s arrive, one instance takes 200/s of useful time, flatmap doubles the rows: 1.5, 1.5 and 3."""
    tasks = {**chain(1, 5.0), "flatmap": {"rows": [1000.0], "rows_out": [2000.0], "run_s": [5.0]}}
    trace = think(ds2(), tasks, arrival_per_s=300.0, taken_per_s=100.0)
    assert wanted(trace) == {"parallelism.source": 2, "parallelism.flatmap": 2, "parallelism.count": 3}
    proposal = only(trace)
    assert proposal.component == "count"
    assert proposal.prediction is not None
    assert proposal.prediction.gain == pytest.approx(math.log(3))
    assert proposal.because[0].evidence["optimum"] == pytest.approx(3.0)


def test_ds2_headroom_and_least_change(think: Think) -> None:
    def at(arrival_per_s: float, headroom: float = 0.0, min_change: int = 1) -> dict[str, float]:
        policy = ds2(Ds2Settings(headroom=headroom, min_change=min_change))
        return wanted(think(policy, chain(10, 5.0), arrival_per_s=arrival_per_s))

    assert at(2000.0) == {}
    assert at(2000.0, headroom=0.2) == {f"parallelism.{name}": 12 for name in ("source", "flatmap", "count")}
    assert at(2100.0, min_change=2) == {}
    assert at(2300.0, min_change=2) == {f"parallelism.{name}": 12 for name in ("source", "flatmap", "count")}


def test_ds2_waits_until_enough_intervals_agree(think: Think) -> None:
    def late(observation: Observation) -> Observation:
        if observation.at_s <= 240.0:
            return observation
        return replace(observation, flows=(replace(observation.flows[0], arrival_per_s=4000.0),))

    def at(activation_intervals: int) -> dict[str, float]:
        policy = ds2(Ds2Settings(activation_intervals=activation_intervals))
        return wanted(think(policy, chain(10, 5.0), arrival_per_s=2000.0, damage=late))

    assert at(1)["parallelism.count"] == 20
    assert at(2) == {}


# Flink


def test_flinks_target_capacity_has_room_to_catch_up_and_to_restart() -> None:
    assert target_capacity(700.0, 10.0, 0.7, 300.0, 1800.0) == pytest.approx(10 + 700 / 6 + 1000)


@pytest.mark.parametrize(
    ("pairs", "alpha"),
    [
        ([(1, 100.0), (2, 200.0), (4, 400.0)], 1.0),
        ([(1, 100.0), (2, 120.0), (4, 130.0)], 0.5),
        ([(1, 100.0), (2, 110.0)], 1.0),
        ([(2, 200.0), (4, 320.0), (8, 640.0)], 0.81),
    ],
)
def test_flinks_scalability_is_fitted_and_kept_within_bounds(pairs: list[tuple[float, float]], alpha: float) -> None:
    assert scalability(pairs) == pytest.approx(alpha, abs=0.005)


def test_flink_rests_within_its_bounds_and_before_its_window_is_full(think: Think) -> None:
    assert wanted(think(flink(), chain(1, 9.9), ticks=130)) == {}
    assert wanted(think(flink(), chain(1, 10.0), pending_rows=18_000.0, ticks=119)) == {}


def test_flink_scales_all_vertices_for_the_load_and_its_backlog(think: Think) -> None:
    """100 rows/s and a lag of 18,000: 10 + 100/6 + 100/0.7 = 169.5 against a capacity of 100."""
    tasks = {**chain(10, 10.0, rows=100.0), "count": {"rows": [500.0] * 2, "rows_out": [0.0] * 2, "run_s": [9.0] * 2}}
    trace = think(flink(), tasks, pending_rows=18_000.0, ticks=130)
    assert wanted(trace) == {"parallelism.source": 17, "parallelism.flatmap": 17, "parallelism.count": 4}
    assert only(trace).because[0].evidence["target capacity_per_s"] == pytest.approx(169.5, abs=0.1)


def test_flink_delays_shrinking_and_never_shrinks_with_a_backlog(think: Think) -> None:
    idle = chain(10, 1.0, rows=100.0)
    assert wanted(think(flink(), idle, ticks=300)) == {}
    assert wanted(think(flink(), idle, ticks=370)) == {f"parallelism.{n}": 4 for n in ("source", "flatmap", "count")}
    assert wanted(think(flink(), idle, pending_rows=31_000.0, ticks=370)) == {}


def test_flink_shrinks_only_to_the_largest_size_recommended_meanwhile(think: Think) -> None:
    def busy_half_an_hour_ago(observation: Observation) -> Observation:
        if not 1500.0 < observation.at_s <= 2400.0:
            return observation
        tasks = {name: replace(s, run_s=s.run_s * 5.0) for name, s in observation.tasks.items()}
        return replace(observation, tasks=tasks)

    tasks = chain(10, 1.0, rows=100.0)
    trace = think(flink(), tasks, ticks=370, damage=busy_half_an_hour_ago)
    assert wanted(trace) == {f"parallelism.{name}": 8 for name in ("source", "flatmap", "count")}


def test_flink_can_allow_for_what_larger_sizes_gained_less(think: Think) -> None:
    changed = FlinkSettings(observed_scalability=True)
    trace = think(flink(changed), chain(1, 10.0), pending_rows=18_000.0, ticks=130)
    assert only(trace).because[0].evidence["scalability"] == 1.0


# HPA and KEDA


@pytest.mark.parametrize(
    ("now", "metric", "target", "desired"),
    [(4, 0.9, 0.6, 6), (4, 0.65, 0.6, 4), (4, 0.67, 0.6, 5), (10, 0.35, 0.7, 5), (3, 0.0, 0.7, 1)],
)
def test_hpas_ratio(now: int, metric: float, target: float, desired: int) -> None:
    assert desired_replicas(now, metric, target) == desired


def test_hpa_shrinks_only_after_five_minutes_of_wanting_to(think: Think) -> None:
    assert wanted(think(hpa(), chain(10, 3.5), ticks=25)) == {}
    assert wanted(think(hpa(), chain(10, 3.5), ticks=40)) == {
        f"parallelism.{name}": 5 for name in ("source", "flatmap", "count")
    }


def test_hpa_shrinks_only_to_the_largest_size_wanted_meanwhile(think: Think) -> None:
    def busier(observation: Observation) -> Observation:
        if not 200.0 < observation.at_s <= 300.0:
            return observation
        return replace(observation, tasks={n: replace(s, run_s=s.run_s * 1.6) for n, s in observation.tasks.items()})

    trace = think(hpa(), chain(10, 3.5), ticks=40, damage=busier)
    assert wanted(trace) == {f"parallelism.{name}": 8 for name in ("source", "flatmap", "count")}


def test_keda_scales_by_the_rows_that_wait(think: Think) -> None:
    policy = hpa(HpaSettings(lag_rows=1000.0))
    tasks = {**chain(2, 7.0), "count": {**chain(2, 7.0)["count"], "pending_rows": [4000.0, 4000.0]}}
    assert wanted(think(policy, tasks)) == {"parallelism.count": 8}
    assert wanted(think(policy, chain(2, 7.0), pending_rows=6000.0)) == {
        "parallelism.source": 6,
        "parallelism.flatmap": 6,
    }


# Spark


def test_dynamic_allocation_grows_to_the_number_of_tasks_doubling_each_second(think_batches: Think) -> None:
    def tasks(seconds: float) -> Tasks:
        return {"count": {"run_s": [seconds] * 20}}

    quick, slow = tasks(2.0), tasks(8.0)
    assert wanted(think_batches(spark_dynamic_allocation(), tasks=quick, executors=4)) == {"executors.app": 7}
    assert wanted(think_batches(spark_dynamic_allocation(), tasks=slow, executors=4)) == {"executors.app": 20}


def test_dynamic_allocation_removes_executors_without_a_task_for_a_minute(think_batches: Think) -> None:
    four_tasks = {name: {"run_s": [1.0] * 4} for name in ("source", "flatmap", "count")}
    trace = think_batches(spark_dynamic_allocation(), tasks=four_tasks, executors=6)
    assert wanted(trace) == {"executors.app": 4}
    assert only(trace).because[0].evidence["idle executors"] == 2.0


def test_dynamic_allocation_removes_instances_that_have_no_work(think: Think) -> None:
    tasks = {"count": {"rows": [500.0, 0.0, 500.0], "pending_rows": [0.0, 0.0, 0.0]}}
    assert wanted(think(spark_dynamic_allocation(), tasks)) == {"parallelism.count": 2}


@pytest.mark.parametrize(("seconds", "target"), [(9.0, 5), (24.0, 6), (26.0, 7), (8.9, None), (3.1, None), (3.0, 3)])
def test_dstream_adds_the_rounded_ratio_and_removes_one(
    think_batches: Think, seconds: float, target: int | None
) -> None:
    trace = think_batches(dstream(), seconds=seconds, executors=4)
    assert wanted(trace) == ({"executors.app": target} if target else {})


# All of them


@pytest.mark.parametrize("name", sorted(PEERS))
def test_every_peer_proposes_executors_once_on_micro_batches(think_batches: Think, name: str) -> None:
    """Four stages' worth of work for 4 executors at twice what they can take."""
    overload = {n: {"run_s": [19.0] * 40} for n in ("source", "flatmap", "count")}
    trace = think_batches(build(name), seconds=20.0, rows=1000.0, tasks=overload, batches=150, pending_rows=1e4)
    proposal = only(trace)
    assert set(wanted(trace)) == {"executors.app"}
    assert wanted(trace)["executors.app"] > 4
    assert proposal.kind == "scale-up"
    assert proposal.prediction is not None
    assert set(proposal.prediction.touched) == {"source", "flatmap", "count"}
    assert proposal.prediction.gain == pytest.approx(math.log(wanted(trace)["executors.app"] / 4))
    assert proposal.because[0].symptoms


SHRINKING = [name for name in sorted(PEERS) if name != "heron"]


def idle(name: str) -> Tasks:
    if name == "spark-dynamic-allocation":
        columns = {"rows": [500.0] * 2 + [0.0] * 8, "run_s": [0.5] * 2 + [0.0] * 8}
        return dict.fromkeys(("source", "flatmap", "count"), columns)
    return chain(10, 0.5, rows=100.0)


def impatient(name: str) -> Policy:
    return (
        flink(FlinkSettings(stabilisation_s=0.0, window_s=60.0, shrink_delay_s=120.0))
        if name == "flink"
        else build(name)
    )


@pytest.mark.parametrize("name", SHRINKING)
def test_every_peer_but_heron_shrinks_what_is_idle(think: Think, name: str) -> None:
    proposal = only(think(impatient(name), idle(name), ticks=40))
    assert proposal.kind == "scale-down"
    assert proposal.prediction is not None
    assert proposal.prediction.gain < 0


@settings(max_examples=12, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@pytest.mark.parametrize("name", SHRINKING)
@given(
    column=st.sampled_from(["rows", "run_s", "rows_out", "pending_rows", "pressured_s"]),
    component=st.sampled_from(["source", "flatmap", "count"]),
    instances=st.sets(st.integers(0, 9), min_size=1),
    last=st.integers(1, 6),
)
def test_no_missing_metric_makes_a_peer_shrink(
    think: Think, name: str, column: str, component: str, instances: set[int], last: int
) -> None:
    def damage(observation: Observation) -> Observation:
        if observation.batch < 40 - last:
            return observation
        sample = observation.tasks[component]
        values = getattr(sample, column).copy()
        values[list(instances)] = NAN
        return replace(observation, tasks={**observation.tasks, component: replace(sample, **{column: values})})

    trace = think(impatient(name), idle(name), ticks=40, damage=damage)
    assert trace.proposals == ()
    assert {d.cause for d in trace.diagnoses} == {"inconclusive"}


@pytest.mark.parametrize("name", sorted(PEERS))
def test_a_metric_that_is_not_there_at_all_is_said(think: Think, name: str) -> None:
    def blind(observation: Observation) -> Observation:
        def without(sample: Any) -> Any:
            unknown = np.full(sample.instances, NAN)
            return replace(sample, rows=unknown, run_s=unknown, pending_rows=unknown, pressured_s=unknown)

        flow = replace(observation.flows[0], rows=NAN, arrival_per_s=NAN, pending_rows=NAN)
        return replace(observation, flows=(flow,), tasks={n: without(s) for n, s in observation.tasks.items()})

    trace = think(build(name), chain(2, 9.9), ticks=130, damage=blind)
    assert trace.proposals == ()
    if name != "spark-dynamic-allocation":  # it asks for no rate: what is not known to be idle has work
        assert {s.kind for s in trace.symptoms} == {"unknown"}


def test_nothing_is_judged_learned_or_blocked() -> None:
    trial = Trial("count", Prediction(0.5), (), (), False, elapsed_s=10.0, settle_s=60.0)
    assert NoJudge().judge(trial) is None
    outcome = NoJudge().judge(replace(trial, elapsed_s=60.0))
    assert outcome is not None
    assert outcome.verdict == "unclear"
    key = ActionKey("under-provisioned", "scale-up", "count")
    entry = MemoryEntry(key, "failed", 0.0)
    assert NoMemory().learn((), entry) == ()
    assert NoMemory().blocked((entry,), key, Context(), 1.0, 60.0) == ""


def test_the_registry_names_each_peer_with_its_settings() -> None:
    assert list(PEERS) == ["heron", "ds2", "flink", "hpa", "spark-dynamic-allocation", "dstream", "static"]
    assert list(PEER_SETTINGS) == list(PEERS)
    assert [build(name).name for name in PEERS] == list(PEERS)


def test_static_needs_to_know_its_peak() -> None:
    with pytest.raises(ConfigError, match="peak"):
        static()
    with pytest.raises(ConfigError, match="peak_per_s"):
        StaticSettings(-1.0)
