"""Starting and stopping a real query on a local session, which keeps its own settings."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import STATE_PARTITIONS, TRIGGER_S, Knob, Value
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark.act.query_launcher import QueryLauncher

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS = "spark.sql.shuffle.partitions"
VALUES: dict[Knob, Value] = {Knob(TRIGGER_S, "counts"): 0.2, Knob(STATE_PARTITIONS, "counts"): 3}


@pytest.fixture
def launcher(local_spark: SparkSession, tmp_path: Path) -> QueryLauncher:
    def build(values: Mapping[Knob, Value]) -> Any:
        rows = local_spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        counts = rows.selectExpr("value % 5 AS key").groupBy("key").count()
        return counts.writeStream.outputMode("update").format("noop")

    return QueryLauncher(local_spark, "counts", build, str(tmp_path / "checkpoint"))


def test_a_single_trigger_ends_by_itself_with_the_partitions_of_the_query(
    launcher: QueryLauncher, local_spark: SparkSession, tmp_path: Path
) -> None:
    before = local_spark.conf.get(PARTITIONS, None)
    query = launcher.start_once(VALUES)
    assert query.name == "counts"
    assert query.awaitTermination(120)
    batch = (tmp_path / "checkpoint" / "offsets" / "0").read_text()
    assert '"spark.sql.shuffle.partitions":"3"' in batch
    assert local_spark.conf.get(PARTITIONS, None) == before, "other queries of the session keep their setting"
    launcher.stop(query)


def test_an_attached_query_cannot_be_built(local_spark: SparkSession) -> None:
    launcher = QueryLauncher(local_spark, "counts", None, "")
    assert not launcher.can_start
    with pytest.raises(QueryError, match="counts: attached queries cannot be restarted"):
        launcher.writer(VALUES)


def test_there_may_be_nothing_to_stop(launcher: QueryLauncher) -> None:
    launcher.stop(None)
