"""What can be done where, and the reason for what cannot."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, cast

import pytest

from homeostat.core.configuration import (
    EXECUTORS_KNOB,
    PARALLELISM,
    ROWS_PER_TRIGGER,
    STATE_PARTITIONS,
    TRIGGER_S,
    Knob,
    KnobSpec,
    Value,
)
from homeostat.spark.act.capabilities import Surroundings, judge, look_around
from homeostat.spark.act.evidence import Evidence
from homeostat.spark.act.managed_query import ManagedQuery

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

STANDALONE = Surroundings("4.3.0", "spark://127.0.0.1:7077", executors=2)
VALUES: dict[Knob, Value] = {
    Knob(STATE_PARTITIONS, "q"): 4,
    Knob(PARALLELISM, "q/split"): 4,
    Knob(ROWS_PER_TRIGGER, "q"): 1000,
    Knob(TRIGGER_S, "q"): 1.0,
}


@dataclass
class LiveStub:
    """What changes without a restart, and why the rest does not."""

    reasons: dict[str, str] = field(default_factory=lambda: dict.fromkeys((ROWS_PER_TRIGGER, TRIGGER_S), "of a reason"))

    def refusal(self, kind: str) -> str:
        return self.reasons.get(kind, "")


@dataclass
class QueryStub:
    """What the capabilities read of a query."""

    name: str = "q"
    values: dict[Knob, Value] = field(default_factory=lambda: dict(VALUES))
    set_by_application: frozenset[Knob] = frozenset()
    restartable: bool = True
    attached: bool = False
    live: LiveStub = field(default_factory=lambda: LiveStub())
    bounds: dict[str, tuple[Value, Value]] = field(default_factory=dict)
    longest_trigger_s: float | None = 3.0
    stateful: bool = True
    rescale_s: float = 30.0
    fixed: str = ""
    query: None = None

    def why_fixed(self, spark_version: str) -> str:
        return self.fixed


def query(stub: QueryStub) -> ManagedQuery:
    return cast(ManagedQuery, stub)


def test_on_a_standalone_cluster_everything_can_be_changed() -> None:
    findings = judge(STANDALONE, [query(QueryStub())])
    knobs = findings.capabilities.knobs
    assert set(knobs) == {EXECUTORS_KNOB, *VALUES}
    assert knobs[EXECUTORS_KNOB].live
    assert not any(knobs[knob].live for knob in VALUES)
    assert findings.capabilities.can_replace
    assert "q: source partitions" in findings.capabilities.notes


def test_rows_and_trigger_are_live_where_the_run_allows_it_and_otherwise_the_reason_is_shown() -> None:
    stub = QueryStub(live=LiveStub({TRIGGER_S: "this release of Spark does not show it"}))
    findings = judge(STANDALONE, [query(stub)])
    rows, trigger = (findings.capabilities.knobs[Knob(kind, "q")] for kind in (ROWS_PER_TRIGGER, TRIGGER_S))
    assert (rows.live, rows.apply_s) == (True, 0.0)
    assert (trigger.live, trigger.promise) == (False, 3.0)
    reasons = {finding.what: finding.reason for finding in findings.table}
    assert reasons["q: rows per trigger"] == "without a restart"
    assert reasons["q: trigger interval"] == (
        "with a restart from the checkpoint, because this release of Spark does not show it"
    )


def test_an_attached_query_offers_what_the_user_gave_bounds_for() -> None:
    bounds: dict[str, tuple[Value, Value]] = {ROWS_PER_TRIGGER: (2000, 5000), TRIGGER_S: (1, 20)}
    live = LiveStub({TRIGGER_S: "its trigger has no interval"})
    stub = QueryStub(restartable=False, attached=True, live=live, bounds=bounds)
    capabilities = judge(STANDALONE, [query(stub)]).capabilities
    assert capabilities.knobs[Knob(ROWS_PER_TRIGGER, "q")] == KnobSpec(
        1000, 5000, live=True
    )  # the present value is allowed
    assert Knob(TRIGGER_S, "q") not in capabilities.knobs
    assert capabilities.notes["q: trigger interval"] == "its trigger has no interval"


@pytest.mark.parametrize(
    ("here", "most", "reason"),
    [
        (Surroundings("4.3.0", "spark://h:1", room=12), 12, "the capacity of the cluster's workers"),
        (Surroundings("4.3.0", "spark://h:1", room=12, cores_max=10, executor_cores=4), 2, "spark.cores.max = 10"),
        (Surroundings("4.3.0", "yarn", executors_max=5), 5, "spark.dynamicAllocation.maxExecutors"),
        (Surroundings("4.3.0", "k8s://h", executors=3), 1000, "the size of the cluster is unknown"),
    ],
)
def test_the_most_executors(here: Surroundings, most: int, reason: str) -> None:
    findings = judge(here)
    assert findings.capabilities.knobs[EXECUTORS_KNOB].maximum == most
    [line] = [finding for finding in findings.table if finding.what == "maximum number of executors"]
    assert reason in line.reason


@pytest.mark.parametrize(
    ("here", "reason"),
    [
        (Surroundings("4.3.0", connect=True), "Spark Connect"),
        (Surroundings("4.3.0", "local[4]", coarse=False), "runs everything in the driver's process"),
    ],
)
def test_without_executors_of_its_own_their_number_is_fixed(here: Surroundings, reason: str) -> None:
    capabilities = judge(here).capabilities
    assert capabilities.knobs[EXECUTORS_KNOB].minimum == capabilities.knobs[EXECUTORS_KNOB].maximum
    assert not capabilities.can_replace
    assert (
        reason in capabilities.notes["change the number of executors"]
        or "Connect" in capabilities.notes["change the number of executors"]
    )


def test_through_connect_nothing_is_sensed() -> None:
    assert not any(finding.can for finding in judge(Surroundings("4.3.0", connect=True)).table)


def test_what_was_not_observed_is_not_claimed() -> None:
    findings = judge(STANDALONE, [query(QueryStub())])
    assert [finding.what for finding in findings.table if finding.seen] == ["maximum number of executors"]
    assert findings.capabilities.knobs, "it may be tried all the same"


def test_what_was_observed_is_claimed_with_the_way_it_came() -> None:
    limit = Knob(ROWS_PER_TRIGGER, "q")
    evidence = Evidence(
        progress=True, executors=True, tasks=True, way="the driver's status store", changed=frozenset({limit})
    )
    table = {finding.what: finding for finding in judge(STANDALONE, [query(QueryStub())], evidence).table}
    assert table["stages and tasks of batches"].seen
    assert table["stages and tasks of batches"].reason == "from the driver's status store"
    assert table["q: rows per trigger"].seen
    assert not table["change the number of executors"].seen


def test_tasks_that_stay_unknown_are_not_claimed_and_the_reason_is_given() -> None:
    blind = Evidence(progress=True, without_tasks=3, errors="the driver's REST API: the answer has status 403")
    table = {finding.what: finding for finding in judge(STANDALONE, evidence=blind).table}
    assert table["progress of queries"].seen
    for what in ("executors", "stages and tasks of batches"):
        assert not table[what].can
        assert "status 403" in table[what].reason


def test_a_change_that_failed_is_no_longer_claimed() -> None:
    limit = Knob(ROWS_PER_TRIGGER, "q")
    evidence = Evidence(changed=frozenset({limit}), failed={limit: "no batch with the new limit within 60 s"})
    [line] = [
        each for each in judge(STANDALONE, [query(QueryStub())], evidence).table if each.what == "q: rows per trigger"
    ]
    assert not line.seen
    assert "no batch with the new limit" in line.reason


def test_a_bound_of_the_application_is_reported_and_no_knob() -> None:
    bound = Knob(ROWS_PER_TRIGGER, "q")
    for restartable in (True, False):
        capabilities = judge(
            STANDALONE, [query(QueryStub(set_by_application=frozenset({bound}), restartable=restartable))]
        ).capabilities
        assert bound not in capabilities.knobs
        assert capabilities.notes["q: rows per trigger"].startswith("1,000, set by the application")


@pytest.mark.parametrize("master", ["yarn", "k8s://https://h:6443"])
def test_other_cluster_managers_are_not_verified(master: str) -> None:
    [line] = [f for f in judge(Surroundings("4.3.0", master)).table if f.what == "change the number of executors"]
    assert line.can
    assert "not verified" in line.reason


@pytest.mark.parametrize(
    ("here", "stub", "reason"),
    [
        (Surroundings("4.1.2", "spark://h:1"), QueryStub(), "requires Spark 4.2 or newer"),
        (Surroundings("4.3.0", "spark://h:1", rocksdb=False), QueryStub(), "RocksDB"),
        (STANDALONE, QueryStub(stateful=False), "no state"),
        (STANDALONE, QueryStub(fixed="operator 0 aggregates without a key"), "operator 0 aggregates without a key"),
    ],
)
def test_when_state_cannot_be_repartitioned(here: Surroundings, stub: QueryStub, reason: str) -> None:
    capabilities = judge(here, [query(stub)]).capabilities
    assert Knob(STATE_PARTITIONS, "q") not in capabilities.knobs
    assert reason in capabilities.notes["q: state partitions"]


def test_an_old_spark_is_not_sensed() -> None:
    capabilities = judge(Surroundings("3.4.1", "spark://h:1")).capabilities
    assert not capabilities.can_replace
    for what in ("progress of queries", "change the number of executors"):
        assert "requires Spark 3.5 or newer" in capabilities.notes[what]
    assert "progress of queries" not in judge(Surroundings("3.5.0", "spark://h:1")).capabilities.notes


def test_a_query_that_was_handed_over_is_restarted_and_its_limit_stays_within_bounds() -> None:
    stub = QueryStub(attached=True, live=LiveStub({}), bounds={ROWS_PER_TRIGGER: (2000, 5000)})
    knobs = judge(STANDALONE, [query(stub)]).capabilities.knobs
    assert Knob(STATE_PARTITIONS, "q") in knobs
    assert knobs[Knob(ROWS_PER_TRIGGER, "q")] == KnobSpec(1000, 5000, live=True)
    assert Knob(TRIGGER_S, "q") not in knobs


def test_a_query_that_the_application_started_is_never_restarted() -> None:
    capabilities = judge(STANDALONE, [query(QueryStub(restartable=False, attached=True))]).capabilities
    assert set(capabilities.knobs) == {EXECUTORS_KNOB}
    assert "cannot be restarted" in capabilities.notes["q: changes that need a restart"]


def test_a_real_session_on_a_real_cluster(spark: SparkSession) -> None:
    findings = judge(look_around(spark, room=12))
    spec = findings.capabilities.knobs[EXECUTORS_KNOB]
    assert (spec.minimum, spec.maximum, spec.live) == (1, 6, True)
    [line] = [finding for finding in findings.table if finding.what == "change the number of executors"]
    assert line.reason == "standalone, instead of Spark's dynamic allocation"
    assert findings.capabilities.can_replace
