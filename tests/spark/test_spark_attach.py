"""`hs.attach` in an application that somebody else wrote: looked after, never restarted."""

from __future__ import annotations

import ctypes
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
from examples.attach import start_counting

import homeostat as hs
from homeostat.core.errors import ConfigError, StoreError
from homeostat.core.records import Record
from homeostat.lab import source
from homeostat.lab.ledger import check, committed_rows, recorded_rows, write_counts
from homeostat.lab.load_profile import Profile
from homeostat.log_views.overview import overview
from homeostat.runtime.attach import Attachment
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.store.sqlite import SqliteStore

if TYPE_CHECKING:
    import pandas as pd
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

WaitUntil = Callable[[Callable[[], bool], str], None]
LiveExecutors = Callable[[], list[str]]
pytestmark = pytest.mark.usefixtures("two_executors")
LIMIT_S = 240.0
PARTITIONS = "spark.sql.shuffle.partitions"
# Three milliseconds a row and 900 rows a second: two executors take two thirds of it.
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=900.0), keys=50)
QUICK = """\
[guards]
cooldown = "5 s"
cooldown_shrink = "10 min"

[loop]
settle = "5 s"
window = "1 min"
patience = "10 s"
"""


@pytest.fixture(autouse=True)
def few_partitions(spark: SparkSession) -> Iterator[None]:
    """Spark's own default is 200, which keeps two cores busy for a minute a batch."""
    before = spark.conf.get(PARTITIONS)
    spark.conf.set(PARTITIONS, "4")
    yield
    spark.conf.set(PARTITIONS, str(before))


def start_words(spark: SparkSession, home: Path) -> StreamingQuery:
    """A plain application that knows nothing of us but our source."""

    # Inside, so that it goes to the executors by value: they do not know this file.
    def slowly(batches: Iterator[pd.DataFrame]) -> Iterator[pd.DataFrame]:
        for batch in batches:
            for _ in range(len(batch)):
                time.sleep(0.003)
            yield batch[["word"]]

    source.register(spark)
    reader = spark.readStream.format("homeostat").option("profile", PROFILE.to_json()).option("partitions", "8")
    words = reader.option("rowsPerTrigger", "3000").load().mapInPandas(slowly, "word string")
    writer = words.groupBy("word").count().writeStream.queryName("words").outputMode("update")
    writer = writer.foreachBatch(write_counts(home / "ledger")).option("checkpointLocation", str(home / "checkpoint"))
    return writer.trigger(processingTime="2 seconds").start()


def records(home: Path, run: str, *kinds: str) -> list[Record]:
    try:
        store = SqliteStore(home / "log.sqlite", read_only=True)
    except StoreError:
        return []  # nobody has written anything yet
    try:
        return store.records(run, kinds=kinds)
    finally:
        store.close()


def attach(spark: SparkSession, home: Path, mode: Any = None) -> Attachment:
    settings = home / "homeostat.toml"
    settings.write_text(f'store = "{home / "log.sqlite"}"\n{QUICK}')
    return hs.attach(spark, hs.Provisioning(), mode=mode, config=settings, directory=home / "kept")


def end_the_loop() -> None:
    [thread] = [each for each in threading.enumerate() if each.name == "homeostat"]
    ctypes.pythonapi.PyThreadState_SetAsyncExc(ctypes.c_ulong(thread.ident or 0), ctypes.py_object(SystemExit))


def test_advised_it_is_watched_and_left_alone_and_a_second_one_stays_away(
    spark: SparkSession,
    live_executors: LiveExecutors,
    tmp_path: Path,
    wait_until: WaitUntil,
    capsys: pytest.CaptureFixture[str],
    homeostat: Callable[..., Any],
) -> None:
    executors = set(live_executors())
    first = attach(spark, tmp_path)
    assert "no streaming query is running" in homeostat("status").out
    query = start_counting(spark)
    try:
        wait_until(lambda: len(records(tmp_path, "kept/counting", "batch")) >= 2, "batches are seen")
        second = attach(spark, tmp_path)
        assert "another manager already controls this application" in capsys.readouterr().err
        elsewhere = hs.attach(spark, directory=tmp_path / "elsewhere")
        assert "another manager already controls this application" in capsys.readouterr().err
        for other in (second, elsewhere):
            other.stop()
            assert not other.running
        batch_count = len(records(tmp_path, "kept/counting", "batch"))
        state = overview(tmp_path / "kept", time.time())
        assert (state.alive, [each.name for each in state.queries]) == (True, ["counting"])
        status = homeostat("status", "--json").json
        assert status["directory"] == str(tmp_path / "kept")
        assert [each["name"] for each in status["queries"]] == ["counting"]
        assert homeostat("log", "--kind", "batch").out.count("\n") > 2
        # What could be done is known in full, or there would be nothing to advise.
        assert {each["what"]: each["can"] for each in state.capabilities}["change the number of executors"]
        assert not first.steers
        end_the_loop()
        wait_until(lambda: "a new one takes over" in capsys.readouterr().err, "the loop is replaced")
        wait_until(lambda: len(records(tmp_path, "kept/counting", "batch")) > batch_count, "the first one goes on")
        assert query.isActive
        assert {str(each.runId) for each in spark.streams.active} == {str(query.runId)}
        assert set(live_executors()) == executors
        assert records(tmp_path, "kept/counting", "action") == []
    finally:
        first.stop()
        still_active = query.isActive
        query.stop()
    assert still_active
    assert not first.running
    with pytest.raises(ConfigError, match="no application was started in this directory"):
        overview(tmp_path / "kept", time.time())


@pytest.mark.soak
def test_advised_more_executors_are_proposed_and_none_is_asked_for(
    spark: SparkSession, live_executors: LiveExecutors, tmp_path: Path, wait_until: WaitUntil
) -> None:
    executors = set(live_executors())
    query = start_words(spark, tmp_path)
    attached = attach(spark, tmp_path)
    try:
        wait_until(
            lambda: any("executors.app" in r.text for r in records(tmp_path, "kept/words", "advice")), "it is advised"
        )
        assert set(live_executors()) == executors
        assert not attached.steers
        bounds = [each for each in overview(tmp_path / "kept", time.time()).capabilities if "rows per" in each["what"]]
        assert [each["reason"][:5] for each in bounds] == ["3,000"]
    finally:
        attached.stop()
        query.stop()


@pytest.mark.soak
def test_regulated_queries_come_and_go_and_the_executors_stay(
    spark: SparkSession, live_executors: LiveExecutors, tmp_path: Path, wait_until: WaitUntil
) -> None:
    words = start_words(spark, tmp_path)
    run = words.runId
    attached = attach(spark, tmp_path, mode="regulate")

    def watched() -> list[str]:
        return sorted(each.name for each in overview(tmp_path / "kept", time.time()).queries)

    try:
        wait_until(
            lambda: any(r.body["applied"] for r in records(tmp_path, "kept/words", "receipt")), "an action is done"
        )
        grown = len(live_executors())
        assert grown > 2
        counting = start_counting(spark)
        wait_until(lambda: bool(records(tmp_path, "kept/counting", "batch")), "the new one is watched")
        assert watched() == ["counting", "words"]
        batch_count = len(records(tmp_path, "kept/words", "batch"))
        wait_until(lambda: len(records(tmp_path, "kept/words", "batch")) > batch_count, "the old one is watched on")
        assert len(live_executors()) >= grown
        counting.stop()
        wait_until(lambda: watched() == ["words"], "it is no longer watched")
        batch_count = len(records(tmp_path, "kept/words", "batch"))
        wait_until(lambda: len(records(tmp_path, "kept/words", "batch")) > batch_count, "the other one is")
        assert len(live_executors()) >= grown
        assert (words.isActive, words.runId, attached.running) == (True, run, True)
    finally:
        attached.stop()
        for query in spark.streams.active:
            query.stop()


@pytest.mark.soak
def test_regulated_it_gets_executors_while_it_runs(
    spark: SparkSession, live_executors: LiveExecutors, tmp_path: Path, wait_until: WaitUntil
) -> None:
    query = start_words(spark, tmp_path)
    run = query.runId
    attached = attach(spark, tmp_path, mode="regulate")
    try:
        wait_until(
            lambda: any(r.body["applied"] for r in records(tmp_path, "kept/words", "receipt")), "an action is done"
        )
        assert len(live_executors()) > 2
        assert query.isActive
        assert query.runId == run
        assert {each.runId for each in spark.streams.active} == {run}
        steps = [str(step) for r in records(tmp_path, "kept/words", "action") for step in r.body["steps"]]  # type: ignore[union-attr]
        assert steps
        assert not any("restart" in step for step in steps)
    finally:
        attached.stop()
        query.stop()
    rows = max(committed_rows(tmp_path / "checkpoint"), recorded_rows(tmp_path / "ledger", tmp_path / "checkpoint"))
    assert rows > 0
    assert check(tmp_path / "ledger", PROFILE, rows) == []


def test_what_cannot_be_used_is_reported_where_it_is_called(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="regular"):
        attach(spark, tmp_path, mode="regular")
    with pytest.raises(ConfigError, match=r"missing\.toml"):
        hs.attach(spark, config=tmp_path / "missing.toml", directory=tmp_path / "kept")


def test_a_directory_that_cannot_be_written_leaves_the_application_alone(
    spark: SparkSession, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "file").write_text("")
    attached = hs.attach(spark, directory=tmp_path / "file" / "kept")
    assert "Homeostat does not manage this application" in capsys.readouterr().err
    attached.stop()
