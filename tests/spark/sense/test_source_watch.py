"""Homeostat queries the sources during a batch, and reports once which ones it cannot query."""

from __future__ import annotations

import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.core.events import Event, Failure, SourceSeen
from homeostat.lab.kafka.broker import KafkaBroker
from homeostat.lab.kafka.topics import Topics
from homeostat.spark.clocks import STEADY
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.progress import Progress, SourceProgress, read_progress, row_shares
from homeostat.spark.sense.query_handle import QueryHandle, handle_of
from homeostat.spark.sense.source_formats import SourceOptions
from homeostat.spark.sense.source_watch import SourceWatch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def watching(events: list[Event], *sources: SourceOptions) -> tuple[SourceWatch, QueryBook]:
    book = QueryBook(lambda: [QueryHandle("orders", "run-1", sources=sources)], lambda reason: None)
    return SourceWatch(book, GuardedWork(events.append, STEADY.now_s), events.append, STEADY.now_s), book


def test_what_waits_is_known_while_a_batch_runs(kafka: KafkaBroker, topics: Topics, topic_name: str) -> None:
    topics.create(topic_name, 1)
    topics.write(topic_name, ["row"] * 10)
    events: list[Event] = []
    options = SourceOptions("kafka", {"kafka.bootstrap.servers": kafka.servers, "subscribe": topic_name})
    watch, book = watching(events, SourceOptions("rate"), options)
    (run,) = book.running()
    read = (SourceProgress(1, 1, 1), SourceProgress(4, 4, 4, {topic_name: {"0": 4}}))
    run.query.latest = Progress("orders", "run-1", 0, 0.0, 1.0, read)
    assert watch.samples(run) == ()
    watch.look()
    (event,) = events
    assert isinstance(event, SourceSeen)
    assert (event.sample.query, event.sample.pending_rows) == ("orders", 6.0)
    assert watch.samples(run) == (event.sample,)
    assert watch.end_at(run, 1, STEADY.now_s()) == 10.0
    assert math.isnan(watch.end_at(run, 0, STEADY.now_s()))
    assert watch.silent("orders") == ""


def test_a_source_that_only_java_can_ask_is_named_once() -> None:
    events: list[Event] = []
    kerberos = {"kafka.bootstrap.servers": "b:1", "kafka.security.protocol": "SASL_SSL", "subscribe": "orders"}
    watch, _ = watching(events, SourceOptions("kafka", kerberos))
    watch.look()
    watch.look()
    (event,) = events
    assert isinstance(event, Failure)
    assert event.harmless
    assert "orders at b:1" in event.error
    assert "GSSAPI" in event.error


def test_files_that_wait_for_spark_are_known_in_bytes_and_rows(
    local_spark: SparkSession, tmp_path: Path, wait_until: Callable[[Callable[[], bool], str], None]
) -> None:
    place = tmp_path / "in"
    place.mkdir()
    for number in range(5):
        (place / f"{number}.json").write_text('{"order": 1234}\n' * 10)
    reader = local_spark.readStream.format("json").schema("order INT").option("maxFilesPerTrigger", 2)
    writer = reader.load(str(place)).writeStream.format("noop").option("checkpointLocation", str(tmp_path / "kept"))
    query = writer.trigger(processingTime="1 hour").start()
    try:
        wait_until(lambda: query.lastProgress is not None, "the first batch has ended")
        handle = handle_of(query, "orders", 3_600.0)
        events: list[Event] = []
        book = QueryBook(lambda: [handle], lambda reason: None)
        watch = SourceWatch(book, GuardedWork(events.append, STEADY.now_s), events.append, STEADY.now_s)
        (run,) = book.running()
        watch.look()
        (report,) = handle.recent_progress()
        progress = watch.positioned(run, read_progress(report))
        run.query.add_shares(row_shares(handle.sources, progress))
        run.query.latest = progress
        watch.look()
        (sample,) = watch.samples(run)
        assert sample.partitions[0].name == "3 files"
        assert sample.pending_rows == pytest.approx(30.0)
        assert (progress.sources[0].rows, progress.sources[0].end) == (20.0, 320.0)
    finally:
        query.stop()
