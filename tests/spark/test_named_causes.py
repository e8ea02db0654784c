"""Faults on real Spark: each is named, nothing is scaled, and the advice, once followed, helps.

Each query runs twice under the default policy, which may act: with its fault until a person is alerted, and changed as
the alert advises.
"""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
import pytest

from homeostat.core.causes import cause_of
from homeostat.core.findings import Diagnosis
from homeostat.core.time_causes import (
    DRIVER_BOUND,
    GC_BOUND,
    POISON_ROW,
    SINK_BOUND,
    SKEWED_JOIN,
    SPILLING,
    STALLED_WATERMARK,
)
from homeostat.models.recoverable import batch_losses
from homeostat.spark.cluster.embedded import EmbeddedCluster
from support import tight_executors
from support import troubled_queries as queries
from support.managed_queries import WARM_BATCHES, Build, ManagedRun, run_managed
from support.paths import ROOT
from support.tight_executors import HEAP, SPILL

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# The advice must shorten what it is about to this share, far beyond what a busy machine does by itself.
HELPED = 0.6
PARTITIONS = "spark.sql.shuffle.partitions"
SETTINGS = {PARTITIONS: "1", "spark.sql.adaptive.enabled": "false"}
SINK, COMMIT, PLANNING, POISON, WATERMARK, JOIN = "sink", "commit", "planning", "poison", "watermark", "join"
# Which run beside each other, as they mostly wait, each for something else; and the partitions of their shuffles.
GROUPS = {(SINK, COMMIT, WATERMARK): "1", (PLANNING, POISON): "1", (JOIN,): "4"}
BUILDS: Mapping[str, tuple[Build, Build]] = {
    SINK: (queries.written_row_by_row, queries.written_in_one_request),
    COMMIT: (partial(queries.committed_in_files, 5), partial(queries.committed_in_files, 1)),
    PLANNING: (queries.planned_column_by_column, queries.planned_at_once),
    POISON: (queries.with_poison, queries.without_poison),
    WATERMARK: (queries.joined_with_an_idle_input, queries.joined_with_a_living_input),
    JOIN: (queries.joined_by_word, queries.joined_by_salted_word),
}
Pair = tuple[ManagedRun, ManagedRun]


def batch_s(run: ManagedRun) -> float:
    """The shortest batch, because other tests may hold up some."""
    return min(each.flows[0].seconds for each in run.warm)


def longest_task_s(run: ManagedRun) -> float:
    """Of the stage that joins. With two slots, a batch cannot gain more than half."""
    return min(float(sample.run_s.max()) for each in run.warm for name, sample in each.tasks.items() if "map" in name)


def behind_s(run: ManagedRun) -> float:
    """How far the watermark is behind the latest event in the end."""
    flows = run.warm[-1].flows
    return max(flow.event_time_s for flow in flows) - min(flow.watermark_s for flow in flows)


def collected_s(run: ManagedRun) -> float:
    """How long the tasks of a batch waited for garbage collection, as Spark reports it."""
    costs = [[sample.costs for sample in each.tasks.values() if sample.costs is not None] for each in run.warm]
    return min(sum(float(np.nansum(each.gc_s)) for each in batch) for batch in costs if batch)


def lost_s(cause: str, run: ManagedRun) -> float:
    """What a batch loses to the cause, by the model. The whole batch also depends on what else the machine does."""
    losses = [losses for each in run.warm if (losses := batch_losses(each)) is not None]
    return min(sum(loss.seconds for (name, _), loss in each.losses.items() if name == cause) for each in losses)


@dataclass(frozen=True, slots=True)
class Case:
    """`advice` is the part of the alert that the second query follows, and `figure` what must become smaller."""

    query: str
    injected: str
    cause: str
    advice: str
    figure: Callable[[ManagedRun], float] = batch_s


CASES = (
    Case(SINK, "foreachBatch writes each row with a request of its own", SINK_BOUND, "write larger batches"),
    Case(COMMIT, "the commit of a table takes over many files", SINK_BOUND, "write larger batches"),
    Case(
        PLANNING,
        "the plan is built column by column",
        DRIVER_BOUND,
        "make the plan smaller",
    ),
    Case(
        HEAP,
        "a row needs much of the heap of an executor",
        GC_BOUND,
        "give each executor more memory",
        collected_s,
    ),
    Case(
        SPILL, "a sort has a few megabytes of memory", SPILLING, "more memory per executor", partial(lost_s, SPILLING)
    ),
    Case(
        POISON, "a row fails on the first attempts", POISON_ROW, "handle the row in your code (try_ functions, a filter"
    ),
    Case(WATERMARK, "one of two inputs is idle", STALLED_WATERMARK, "an idle input holds back", behind_s),
    Case(JOIN, "a key has most rows on both sides of a join", SKEWED_JOIN, "salt the hot keys", longest_task_s),
)


@pytest.fixture(scope="module")
def settings(spark: SparkSession) -> Iterator[None]:
    before = {name: str(spark.conf.get(name)) for name in SETTINGS}
    for values in (SETTINGS, before):
        for name, value in values.items():
            spark.conf.set(name, value)
        if values is SETTINGS:
            yield


@pytest.fixture(scope="module")
def pairs(
    spark: SparkSession, cluster: EmbeddedCluster, settings: None, tmp_path_factory: pytest.TempPathFactory
) -> Callable[[str], Pair]:
    """By name, the runs of a query with its fault and without. Queries of a group run when the first is asked for."""
    runs: dict[str, Pair] = {}

    def pair(name: str) -> Pair:
        if name not in runs:
            home = tmp_path_factory.mktemp(name)
            group = next((group for group in GROUPS if name in group), ())
            runs.update(_shared(spark, home, group) if group else _tight(cluster, home))
        return runs[name]

    return pair


def _shared(spark: SparkSession, home: Path, group: tuple[str, ...]) -> dict[str, Pair]:
    causes = {case.query: case.cause for case in CASES}
    spark.conf.set(PARTITIONS, GROUPS[group])

    def is_named(name: str, run: ManagedRun) -> bool:
        return causes[name] in run.alerts and len(run.warm) >= WARM_BATCHES

    troubled = run_managed(spark, home / "troubled", {name: BUILDS[name][0] for name in group}, is_named)
    builds = {name: BUILDS[name][1] for name in group}
    mended = run_managed(spark, home / "mended", builds, lambda name, run: len(run.warm) >= WARM_BATCHES)
    return {name: (troubled[name], mended[name]) for name in group}


def _tight(cluster: EmbeddedCluster, home: Path) -> dict[str, Pair]:
    environment = {**os.environ, "PYTHONPATH": f"{ROOT / 'src'}:{ROOT / 'tests'}"}
    command = [sys.executable, tight_executors.__file__, cluster.master_url, str(home)]
    subprocess.run(command, check=True, env=environment)
    runs: dict[str, Pair] = pickle.loads((home / "runs.pickle").read_bytes())
    return runs


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.query)
def test_a_fault_is_named_nothing_is_scaled_and_the_advice_helps(case: Case, pairs: Callable[[str], Pair]) -> None:
    troubled, mended = pairs(case.query)
    assert case.advice in cause_of(case.cause).advice
    assert case.advice in troubled.alerts[case.cause]
    assert any(costs_most(case.cause, cycle) for cycle in troubled.cycles)
    assert troubled.scalings == []
    assert case.figure(mended) < HELPED * case.figure(troubled)


def costs_most(cause: str, cycle: tuple[Diagnosis, ...]) -> bool:
    """Whether the cycle names the cause, and none that costs more. Some causes do not say what they cost."""
    own = [each.evidence.recoverable_s for each in cycle if each.cause == cause]
    others = [each.evidence.recoverable_s or 0.0 for each in cycle if each.cause != cause]
    return any(cost_s is None or cost_s >= max(others, default=0.0) for cost_s in own)
