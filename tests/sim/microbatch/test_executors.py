"""Executors come, drain, leave and are replaced within what the cluster grants."""

from __future__ import annotations

from homeostat.sim.faults import Faults
from homeostat.sim.microbatch.executors import Executor, Executors
from homeostat.sim.scenario.spec import MicrobatchSpec

SPEC = MicrobatchSpec(executors=2, executor_start_s=10.0, grant_limit=3, hosts=2)


def executors() -> tuple[Executors, list[Executor]]:
    requested: list[Executor] = []
    return Executors(SPEC, Faults(()), requested.append), requested


def test_growth_takes_the_start_time_and_stops_at_the_grant() -> None:
    cluster, requested = executors()
    cluster.target = 5
    cluster.settle(0.0)
    assert (len(cluster.up(5.0)), len(cluster.up(10.0)), len(requested)) == (2, 3, 3)
    assert not cluster.has_settled(20.0)


def test_an_executor_that_leaves_drains_until_the_batch_ends() -> None:
    cluster, _ = executors()
    cluster.target = 1
    cluster.settle(0.0)
    assert [executor.id for executor in cluster.usable(0.0)] == ["exec-0"]
    cluster.remove_drained(0.0)
    assert cluster.has_settled(0.0)


def test_a_crashed_executor_is_replaced() -> None:
    cluster, _ = executors()
    crashed = cluster.crash(0, now_s=0.0, back_s=7.0)
    assert crashed is not None
    assert cluster.crashed_executors(1.0) == [crashed]
    assert (len(cluster.up(1.0)), len(cluster.up(7.0)), cluster.crashed_executors(7.0)) == (1, 2, [])
