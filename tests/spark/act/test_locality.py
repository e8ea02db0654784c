"""The locality wait is lowered for a while, and then as it was."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.locality import Locality

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WAIT, OTHER_WAIT = "spark.locality.wait.process", "spark.locality.wait.node"


def test_waits_are_lowered_while_new_executors_have_not_worked_and_then_restored(local_spark: SparkSession) -> None:
    conf: Any = local_spark.sparkContext._jsc.sc().conf()
    conf.set(WAIT, "7s")
    conf.remove(OTHER_WAIT)
    waits: list[tuple[str, str]] = []

    def worked(ids: frozenset[str]) -> frozenset[str]:
        waits.append((conf.get(WAIT, ""), conf.get(OTHER_WAIT, "")))
        return ids if len(waits) >= 2 else frozenset()

    locality = Locality(local_spark)
    try:
        assert locality.spread(frozenset({"3"}), worked, lambda: False, Deadline.after(60.0)) == ""
        assert waits[:2] == [("0s", "0s"), ("0s", "0s")]
        assert (conf.get(WAIT, ""), conf.get(OTHER_WAIT, "")) == ("7s", "")
    finally:
        conf.remove(WAIT)


def test_executors_that_have_not_worked_are_named(local_spark: SparkSession) -> None:
    remark = Locality(local_spark).spread(
        frozenset({"4", "3"}), lambda ids: ids - {"3"}, lambda: True, Deadline.after(60.0)
    )
    assert remark == "no task of the slowest stage has run yet on executor 3"
    assert Locality(local_spark).spread(frozenset(), lambda ids: ids, lambda: False, Deadline.after(60.0)) == ""
