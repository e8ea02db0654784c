"""The first values of a query's knobs, and where it keeps its control file."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    SWITCHES,
    TRIGGER_S,
    Knob,
)
from homeostat.core.objective import Objective
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.application_query import DEFAULT_STATE_PARTITIONS, ApplicationQuery, first_values
from homeostat.spark.pipeline import Context, Pipeline

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

OBJECTIVE = Objective(throughput_per_s=1000.0)


def pipeline(trigger_s: float | None = None, **start: int) -> Pipeline:
    return Pipeline("words", lambda ctx: None, OBJECTIVE, trigger_s, start)


def test_without_a_trigger_none_is_set_and_the_limit_is_for_the_default_one() -> None:
    assert first_values(pipeline()) == {
        Knob(STATE_PARTITIONS, "words"): DEFAULT_STATE_PARTITIONS,
        Knob(SOURCE_PARTITIONS, "words"): DEFAULT_STATE_PARTITIONS,
        Knob(ROWS_PER_TRIGGER, "words"): 20_000,
    }


def test_what_the_pipeline_names_is_taken() -> None:
    values = first_values(pipeline(2.0, state_partitions=3, source_partitions=4, rows_per_trigger=500))
    assert values == {
        Knob(TRIGGER_S, "words"): 2.0,
        Knob(STATE_PARTITIONS, "words"): 3,
        Knob(SOURCE_PARTITIONS, "words"): 4,
        Knob(ROWS_PER_TRIGGER, "words"): 500,
    }


def test_without_a_manager_events_are_dropped_and_no_run_is_known(tmp_path: Path) -> None:
    query = ApplicationQuery(pipeline(), tmp_path, {})
    assert query.name == "words"
    assert query.control == tmp_path / "control" / "words.json"
    assert not query.is_run("some run")
    assert query.engine is None


@pytest.mark.parametrize(("keeps_state", "kind"), [(True, CHANGELOG_CHECKPOINTING), (False, ASYNC_PROGRESS)])
def test_a_started_query_has_the_switches_that_spark_allows_it(
    local_spark: SparkSession, tmp_path: Path, keeps_state: bool, kind: str
) -> None:
    def build(ctx: Context) -> Any:
        rows = ctx.read_stream("rate").option("rowsPerSecond", "20").load()
        written = rows.groupBy("value").count().writeStream.outputMode("update") if keeps_state else rows.writeStream
        return written.format("noop")

    query = ApplicationQuery(Pipeline("words", build, OBJECTIVE, 0.5, {STATE_PARTITIONS: 2}), tmp_path, {})
    query.open(local_spark)
    try:
        query.start(Deadline.after(120.0))
        assert {knob: value for knob, value in query.managed.values.items() if knob.kind in SWITCHES} == {
            Knob(kind, "words"): 0
        }
    finally:
        query.managed.stop()
