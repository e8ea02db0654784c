"""What really is wrong: the causes of faults, what they cost, and whether more executors help."""

from __future__ import annotations

from dataclasses import replace
from typing import get_args

import pytest

from homeostat.core.causes import (
    ADMISSION_LIMITED,
    DATA_SKEW,
    SLOW_INSTANCE,
    UNBOUNDED_STATE,
    UNDER_PROVISIONED,
    cause_of,
)
from homeostat.core.configuration import EXECUTORS_KNOB, SPREAD, Configuration, Knob
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply
from homeostat.core.time_causes import (
    CHECKPOINT_BOUND,
    COSTLY_KEYS,
    DRIVER_BOUND,
    GC_BOUND,
    HOST_CONTENTION,
    SINK_BOUND,
    SKEWED_JOIN,
    STALLED_WATERMARK,
    TINY_TASKS,
    TOO_FEW_PARTITIONS,
)
from homeostat.sim.microbatch.engine import Microbatch
from homeostat.sim.scenario.spec import DataflowSpec, FaultKind, FaultSpec, Scenario, WorkloadSpec
from homeostat.sim.truth_labels import Labels, labels
from support.troubled_runs import ENGINE, SCENARIO, with_faults

NO_CAUSE = {"crash", "metric-gap", "garbage-metrics", "late-rows"}


def fault(kind: FaultKind) -> FaultSpec:
    component = "count" if kind in ("costly-keys", "skewed-join", "poison-row", "stuck-task", "hot-key") else ""
    host = "host-1" if kind == "slow-host" else ""
    return FaultSpec(kind, until_s=500.0, component=component, host=host, row_s=0.001, task_s=0.1, growth=1.0)


def causes_at(scenario: Scenario, t_s: float) -> set[tuple[str, str]]:
    return {(label.cause, label.component) for label in Labels(scenario).at(t_s)}


@pytest.mark.parametrize("kind", get_args(FaultKind))
def test_every_fault_has_declared_causes(kind: FaultKind) -> None:
    standing = labels(with_faults(fault(kind)))
    assert bool(standing) == (kind not in NO_CAUSE)
    for label in standing:
        assert {cause_of(name).title for name in (label.cause, *label.also)} != {"A problem was diagnosed"}
        assert (label.at_s, label.until_s) == (0.0, 500.0)


@pytest.mark.parametrize(
    ("trouble", "cause", "helps"),
    [
        (FaultSpec("slow-sink"), SINK_BOUND, False),
        (FaultSpec("slow-commit"), CHECKPOINT_BOUND, False),
        (FaultSpec("slow-planning"), DRIVER_BOUND, False),
        (FaultSpec("slow-scheduling", task_s=0.5), DRIVER_BOUND, False),
        (FaultSpec("memory", component="count", rows=600.0), GC_BOUND, True),
        (FaultSpec("contention", share=0.7), HOST_CONTENTION, True),
    ],
)
def test_a_label_says_whether_more_executors_help(trouble: FaultSpec, cause: str, helps: bool) -> None:
    (label,) = labels(with_faults(trouble, partitions=32))
    assert (label.cause, label.scaling_helps) == (cause, helps)


def test_a_fault_stands_while_it_lasts_and_costs_something() -> None:
    scenario = with_faults(FaultSpec("slow-sink", at_s=100.0, until_s=200.0, seconds=4.0))
    assert [causes_at(scenario, t) for t in (50.0, 150.0, 250.0)] == [set(), {(SINK_BOUND, "count")}, set()]
    little = with_faults(FaultSpec("slow-sink", seconds=0.05))
    assert causes_at(little, 150.0) == set()
    truth = Labels(scenario)
    assert truth.cost_s(truth.all[0], 150.0) == pytest.approx(4.0)


def test_a_fault_everywhere_stands_where_it_costs() -> None:
    scenario = with_faults(FaultSpec("memory", rows=1050.0), partitions=64)
    assert {label.component for label in Labels(scenario).all} == {"lines", "count"}
    assert causes_at(scenario, 50.0) == {(GC_BOUND, "lines")}


def test_a_stalled_watermark_stands_before_it_costs_time() -> None:
    (label,) = Labels(with_faults(FaultSpec("stalled-watermark", at_s=100.0))).at(101.0)
    assert (label.cause, label.also) == (STALLED_WATERMARK, frozenset({UNBOUNDED_STATE}))


def test_a_hot_key_no_longer_stands_when_it_is_spread() -> None:
    truth = Labels(with_faults(FaultSpec("hot-key", component="count", share=0.5)))
    assert [label.cause for label in truth.at(50.0)] == [DATA_SKEW]
    assert truth.at(50.0, {Knob(SPREAD, "count"): 16}) == ()


def test_a_configuration_can_be_wrong_by_itself() -> None:
    source, count = SCENARIO.components
    assert causes_at(SCENARIO, 50.0) == set()
    busy = replace(SCENARIO, workload=WorkloadSpec(rate_per_s=2500.0))
    assert causes_at(busy, 50.0) == {(UNDER_PROVISIONED, "")}
    assert UNDER_PROVISIONED not in {label.cause for label in Labels(busy).at(50.0, {EXECUTORS_KNOB: 8})}
    limited = replace(SCENARIO, engine=replace(ENGINE, rows_per_trigger=2000.0))
    assert causes_at(limited, 50.0) == {(ADMISSION_LIMITED, "")}
    few = replace(SCENARIO, components=(source, replace(count, parallelism=2)))
    assert (TOO_FEW_PARTITIONS, "count") in causes_at(few, 50.0)
    many = replace(SCENARIO, components=(source, replace(count, parallelism=400, task_s=0.2)))
    assert (TINY_TASKS, "count") in causes_at(many, 50.0)
    assert any(label.cause == TINY_TASKS and label.scaling_helps for label in Labels(many).at(50.0)), (
        "more start at once"
    )
    busy_driver = replace(with_faults(partitions=200), engine=replace(ENGINE, dispatch_s=0.02))
    assert causes_at(busy_driver, 50.0) == {(TINY_TASKS, "count")}


def test_a_diagnosis_under_another_name_or_without_a_place_can_be_right() -> None:
    (label,) = labels(with_faults(FaultSpec("stalled-watermark")))
    assert label.matches(STALLED_WATERMARK, "count")
    assert label.matches(UNBOUNDED_STATE, "")
    assert not label.matches(UNBOUNDED_STATE, "lines")
    assert not label.matches(SINK_BOUND, "count")


def test_uneven_rows_of_a_join_have_the_name_that_its_topology_shows() -> None:
    source, count = SCENARIO.components
    joined = replace(count, inputs=(source.name, "more"))
    two = replace(SCENARIO, components=(source, replace(source, name="more"), joined))
    hot, exploding = FaultSpec("hot-key", component=count.name), FaultSpec("skewed-join", component=count.name)
    (at_a_join,) = labels(replace(two, faults=(hot,)))
    assert at_a_join.matches(DATA_SKEW, count.name)
    assert at_a_join.matches(SKEWED_JOIN, count.name)
    (elsewhere,) = labels(replace(SCENARIO, faults=(exploding,)))
    assert elsewhere.matches(COSTLY_KEYS, count.name)


def test_a_slow_executor_no_longer_stands_when_it_was_replaced() -> None:
    scenario = with_faults(FaultSpec("slow-instance", instance=1))
    engine, truth = Microbatch(scenario), Labels(scenario)
    engine.wait(40.0)
    assert [label.cause for label in truth.standing(engine.truth[-1])] == [SLOW_INSTANCE]
    engine.apply(Apply("c", 0.0, Configuration({}, frozenset({"exec-1"})), (), 120.0))
    engine.wait(120.0)
    assert truth.standing(engine.truth[-1]) == ()


def test_only_micro_batches_have_labels() -> None:
    with pytest.raises(ConfigError):
        Labels(replace(SCENARIO, engine=DataflowSpec()))
