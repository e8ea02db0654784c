"""Operators of stages and exchanges of plans, from what Spark 4.3 printed for real queries (`recorded/stages.json`)."""

from __future__ import annotations

import json
from typing import Any

import pytest

from homeostat.spark.sense.plan_graph import exchanges, from_scopes, read_dot
from support.paths import RECORDED as LOGS

RECORDED: dict[str, Any] = json.loads((LOGS / "stages.json").read_text())


def test_exchanges_come_in_the_order_of_the_data() -> None:
    in_order = exchanges(RECORDED["twice"]["plan"])
    assert [(exchange.by_number, exchange.hashed) for exchange in in_order] == [
        (True, False),
        (True, False),
        (False, True),
    ]


def test_only_the_plan_that_runs_counts_under_adaptive_execution() -> None:
    assert "Initial Plan" in RECORDED["stateless"]["plan"]
    assert len(exchanges(RECORDED["stateless"]["plan"])) == 1


def test_a_graph_from_an_event_log_is_the_same_as_the_one_spark_draws() -> None:
    stages = [stage for stage in RECORDED["wordcount"]["stages"] if stage["ran"]]
    drawn = read_dot(stages[1]["dot"], stages[1]["incoming"])
    assert drawn.operators
    scopes = [(rdd, scope.scope, scope.name) for scope in drawn.operators for rdd in (scope.first_rdd,)]
    read = from_scopes(scopes, drawn.reads)
    assert (read.operators, read.reads) == (drawn.operators, drawn.reads)


@pytest.mark.parametrize("dot", ["", "digraph G {", "}\n}\n}", "subgraph cluster_1 {\nlabel="])
def test_a_graph_that_makes_no_sense_is_empty(dot: str) -> None:
    assert read_dot(dot, "RDDOperationEdge(").operators == ()
