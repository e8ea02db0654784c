"""`homeostat watch` on the test session's own page: the wrong application, the wrong log, a job that was missed."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.spark.clocks import DriverClock
from homeostat.spark.outside import remote_application
from homeostat.spark.outside.remote_application import RestQueries
from homeostat.spark.sense.rest_answers import Job
from homeostat.spark.sense.rest_client import RestClient

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Homeostat = Callable[..., Any]
Wait = Callable[[Callable[[], bool], str], None]


class Forgetful(RestClient):
    """Spark as it is, but for one job that it no longer knows."""

    lost = -1

    def job(self, number: int) -> Job | None:
        return None if number == self.lost else super().job(number)


def test_an_application_that_is_not_there_is_refused_at_once(homeostat: Homeostat, spark: SparkSession) -> None:
    url, there = str(spark.sparkContext.uiWebUrl), spark.sparkContext.applicationId
    result = homeostat("watch", url, "--application", f"{there}0")
    assert (result.code, result.out) == (2, "")
    assert result.err == f"homeostat: {url}: no application '{there}0' at this address (did you mean '{there}'?)\n"


def test_an_event_log_of_another_application_is_refused(
    homeostat: Homeostat, spark: SparkSession, tmp_path: Path
) -> None:
    (tmp_path / "events").mkdir()
    (tmp_path / "events" / "app-2").write_text("")
    result = homeostat("watch", str(spark.sparkContext.uiWebUrl), "--event-log", tmp_path / "events")
    assert (result.code, result.out, len(result.err.splitlines())) == (2, "", 1)
    assert f"events: the directory has no event log of {spark.sparkContext.applicationId}" in result.err


def test_a_job_that_spark_has_forgotten_does_not_end_the_watch(
    spark: SparkSession, wait_until: Wait, monkeypatch: pytest.MonkeyPatch
) -> None:
    ticks = spark.readStream.format("rate").option("rowsPerSecond", 100).load()
    query = ticks.writeStream.queryName("ticks").format("noop").start()
    try:
        with closing(Forgetful(str(spark.sparkContext.uiWebUrl))) as rest:
            queries = RestQueries(rest, DriverClock())

            def newest_batch() -> int:
                mine = [each for each in queries.handles() if each.run_id == str(query.runId)]
                batch_ids = [int(progress["batchId"]) for each in mine for progress in each.recent_progress()]
                return max(batch_ids, default=-1)

            def newest_job() -> int:
                return max(job.id for job in rest.jobs())

            wait_until(lambda: newest_batch() >= 0, "a batch was seen")
            rest.lost = newest_job() + 2
            wait_until(lambda: newest_job() > rest.lost + 2, "others came after the lost job")
            reached = int(query.recentProgress[-1]["batchId"])
            assert newest_batch() < reached
            monkeypatch.setattr(remote_application, "_LIST_ANEW_S", 0.0)
            wait_until(lambda: newest_batch() >= reached, "it is watched on")
    finally:
        query.stop()
