"""Spark's dynamic allocation counts tasks, not rows."""

from __future__ import annotations

from collections.abc import Mapping

import pytest

from homeostat.policies.peers import (
    spark_dynamic_allocation,
)
from support.one_thought import Columns, only, proposed_values, think, think_batches
from support.trajectories import run


@pytest.mark.slow
def test_dynamic_allocation_knows_no_rates_and_leaves_a_dataflow_as_it_is() -> None:
    assert run("E7", spark_dynamic_allocation()).trajectory == ()


def test_dynamic_allocation_grows_to_the_number_of_tasks_doubling_each_second() -> None:
    def tasks(seconds: float) -> Mapping[str, Columns]:
        return {"count": {"run_s": [seconds] * 20}}

    quick, slow = tasks(2.0), tasks(8.0)
    assert proposed_values(think_batches(spark_dynamic_allocation(), tasks=quick, executors=4)) == {"executors.app": 7}
    assert proposed_values(think_batches(spark_dynamic_allocation(), tasks=slow, executors=4)) == {"executors.app": 20}


def test_dynamic_allocation_removes_executors_without_a_task_for_a_minute() -> None:
    four_tasks = {name: {"run_s": [1.0] * 4} for name in ("source", "flatmap", "count")}
    trace = think_batches(spark_dynamic_allocation(), tasks=four_tasks, executors=6)
    assert proposed_values(trace) == {"executors.app": 4}
    assert only(trace).because[0].evidence.figures()["idle executors"] == 2.0


def test_dynamic_allocation_removes_instances_that_have_no_work() -> None:
    tasks = {"count": {"rows": [500.0, 0.0, 500.0], "pending_rows": [0.0, 0.0, 0.0]}}
    assert proposed_values(think(spark_dynamic_allocation(), tasks)) == {"parallelism.count": 2}
