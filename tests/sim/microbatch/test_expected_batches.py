"""The judges' arithmetic: how long a batch takes without noise, and how many executors are enough."""

from __future__ import annotations

from dataclasses import replace

import pytest

from homeostat.sim.microbatch.disturbances import CALM, Disturbance, disturbance
from homeostat.sim.microbatch.expected_batches import Application, expected_batch_s, sufficient_executors
from homeostat.sim.microbatch.stages import Routing
from homeostat.sim.scenario.spec import FaultSpec
from support.troubled_runs import ENGINE, SCENARIO, observe, seconds, with_faults

APPLICATION = Application(SCENARIO.components, ENGINE, (Routing(8), Routing(16)))
LOAD_PER_S, INTERVAL_S = 400.0, 10.0


def under(*faults: FaultSpec, at_s: float = 80.0) -> Disturbance:
    return disturbance(faults, SCENARIO.components, at_s)


@pytest.mark.parametrize(
    "fault",
    [
        None,
        FaultSpec("slow-sink", row_s=0.0001),
        FaultSpec("slow-commit"),
        FaultSpec("slow-scheduling", task_s=0.1),
        FaultSpec("memory", rows=1200.0),
        FaultSpec("contention", share=0.5),
        FaultSpec("contention", share=0.5, host="host-1"),
        FaultSpec("slow-network", row_s=0.001),
        FaultSpec("small-files", rows=20.0),
        FaultSpec("costly-keys", component="count", instance=3),
        FaultSpec("skewed-join", component="lines", instance=3),
        FaultSpec("collecting", row_s=0.0005),
    ],
)
def test_the_expected_time_is_that_of_the_engine(fault: FaultSpec | None) -> None:
    faults = (fault,) if fault else ()
    batch = observe(with_faults(*faults))[-1]
    expected_s = expected_batch_s(APPLICATION, batch.flows[0].rows, 4, under(*faults))
    assert expected_s == pytest.approx(seconds(batch), rel=0.1)


def test_executors_that_reach_the_interval_are_enough() -> None:
    executors = sufficient_executors(APPLICATION, LOAD_PER_S * 4, INTERVAL_S)
    rows = LOAD_PER_S * 4 * INTERVAL_S
    assert (
        expected_batch_s(APPLICATION, rows, executors)
        <= INTERVAL_S
        < expected_batch_s(APPLICATION, rows, executors - 1)
    )


@pytest.mark.parametrize(
    "fault",
    [
        FaultSpec("slow-sink", seconds=12.0),
        FaultSpec("slow-planning", seconds=30.0),
        FaultSpec("slow-commit", seconds=12.0),
    ],
)
def test_where_no_number_reaches_the_interval_the_fewest_that_do_nearly_as_well_are_enough(fault: FaultSpec) -> None:
    now, rows = under(fault), LOAD_PER_S * INTERVAL_S
    executors = sufficient_executors(APPLICATION, LOAD_PER_S, INTERVAL_S, now)
    best_s = min(expected_batch_s(APPLICATION, rows, n, now) for n in range(1, 41))
    assert expected_batch_s(APPLICATION, rows, executors, now) <= 1.02 * best_s
    assert expected_batch_s(APPLICATION, rows, executors - 1, now) > 1.02 * best_s
    assert executors <= 8


def test_a_commit_that_is_longer_than_the_trigger_needs_no_more_executors_than_have_work() -> None:
    slow = replace(APPLICATION, engine=replace(APPLICATION.engine, commit_s=12.0))
    assert sufficient_executors(slow, LOAD_PER_S, INTERVAL_S, CALM) <= 8


def test_a_slow_executor_counts() -> None:
    rows = LOAD_PER_S * INTERVAL_S
    assert expected_batch_s(APPLICATION, rows, 4, slowness={1: 4.0}) > 1.3 * expected_batch_s(APPLICATION, rows, 4)


def test_executors_that_crowd_each_other_are_not_asked_for() -> None:
    crowded = tuple(replace(component, crowding=1.0, task_s=0.5) for component in SCENARIO.components)
    application = replace(APPLICATION, components=crowded)
    executors = sufficient_executors(application, LOAD_PER_S, 4.0)
    rows = LOAD_PER_S * 4.0
    best_s = min(expected_batch_s(application, rows, n) for n in range(1, 9))
    assert 4.0 < expected_batch_s(application, rows, executors) <= 1.02 * best_s
