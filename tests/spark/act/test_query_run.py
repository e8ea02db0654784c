"""A real query on a local session, watched and started through what a managed query is made of."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.core.configuration import STATE_PARTITIONS, TRIGGER_S, Knob, Value
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark.act.query_launcher import QueryLauncher
from homeostat.spark.act.query_run import QueryRun

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

LIMIT_S = 120.0
PARTITIONS = "spark.sql.shuffle.partitions"
VALUES: dict[Knob, Value] = {Knob(TRIGGER_S, "rates"): 0.2, Knob(STATE_PARTITIONS, "rates"): 3}


@pytest.fixture
def launcher(local_spark: SparkSession, tmp_path: Path) -> QueryLauncher:
    def build(values: Mapping[Knob, Value]) -> Any:
        rows = local_spark.readStream.format("rate").option("rowsPerSecond", 20).load()
        return rows.writeStream.format("noop")

    return QueryLauncher(local_spark, "rates", build, str(tmp_path / "checkpoint"))


@pytest.fixture
def run(launcher: QueryLauncher) -> Iterator[QueryRun]:
    run = QueryRun(launcher.start(launcher.writer(VALUES), VALUES))
    yield run
    launcher.stop(run.query)


def test_before_the_first_run_there_is_nothing_to_see() -> None:
    run = QueryRun()
    assert not run.active
    assert not run.idle
    assert run.last_batch() == (-1, "")
    assert not run.works_within(Deadline.after(LIMIT_S))


def test_a_run_works_and_its_batches_end(run: QueryRun) -> None:
    assert run.works_within(Deadline.after(LIMIT_S))
    assert Deadline.after(LIMIT_S).wait_until(lambda: run.last_batch()[0] >= 1)
    assert Deadline.after(LIMIT_S).wait_until(run.batch_end())
    run.require_work(Deadline.after(LIMIT_S))


def test_a_run_that_is_stopped_has_ended_without_an_error(run: QueryRun, launcher: QueryLauncher) -> None:
    ended = run.batch_end()
    launcher.stop(run.query)
    assert not run.active
    assert ended()
    assert run.why_ended() == "the query ended without an error"
    with pytest.raises(QueryError, match="the query ended without an error"):
        run.require_work(Deadline.after(LIMIT_S))
