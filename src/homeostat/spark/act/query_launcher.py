"""Starts and stops the runs of one query, with the session's settings that a run needs."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from threading import RLock
from typing import TYPE_CHECKING

from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    STATE_PARTITIONS,
    TRIGGER_S,
    Knob,
    Value,
)
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark.pipeline import require_manageable
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Values = Mapping[Knob, Value]
Build = Callable[[Values], "DataStreamWriter"]

_PARTITIONS = "spark.sql.shuffle.partitions"
_STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
ASYNC_OPTION = "asyncProgressTrackingEnabled"
# With Spark's default interval of one second the logs have gaps, and the query could not continue without this option.
_ASYNC_OPTIONS = {ASYNC_OPTION: "true", "asyncProgressTrackingCheckpointIntervalMs": "0"}
_POOL = "spark.scheduler.pool"
# How long Spark waits for a batch to notice that its query stops. Without a limit, a hanging sink blocks forever.
STOP_S = 30.0
# The same at the end of the application. A person waits for it, and the end of the session stops all queries anyway.
LAST_STOP_S = 5.0
# All queries share the session's settings. A query copies them when it starts.
_session_settings = RLock()


class QueryLauncher:
    """`build` makes the writer for given values; None for an attached query, which Homeostat cannot start."""

    def __init__(self, spark: SparkSession, query: str, build: Build | None, checkpoint: str) -> None:
        self._spark, self._query, self._build, self._checkpoint = spark, query, build, checkpoint

    @property
    def can_start(self) -> bool:
        return self._build is not None

    def writer(self, values: Values) -> DataStreamWriter:
        if self._build is None:
            raise QueryError("attached queries cannot be restarted", where=self._query)
        writer = self._build(values)
        require_manageable(writer, self._checkpoint)
        writer = writer.queryName(self._query).option("checkpointLocation", self._checkpoint)
        tracks_async = values.get(Knob(ASYNC_PROGRESS, self._query))
        if tracks_async is not None:  # a writer that is started again keeps the options that it was given before
            writer = writer.options(**_ASYNC_OPTIONS) if tracks_async else writer.option(ASYNC_OPTION, "false")
        trigger_s = values.get(Knob(TRIGGER_S, self._query))
        if trigger_s is None:
            return writer
        return writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")

    def start(self, writer: DataStreamWriter, values: Values) -> StreamingQuery:
        context = self._spark.sparkContext
        partitions = values.get(Knob(STATE_PARTITIONS, self._query))
        changelog = values.get(Knob(CHANGELOG_CHECKPOINTING, self._query))
        settings = {
            _PARTITIONS: partitions,
            _STOP_TIMEOUT: f"{STOP_S:g}s",
            CHANGELOG: None if changelog is None else str(bool(changelog)).lower(),
        }
        # With a pool of its own, each query of an application gets a fair share of the executors.
        pool = context.getLocalProperty(_POOL)
        context.setLocalProperty(_POOL, pool or self._query)
        try:
            # Spark first stops an earlier run that still hangs. Without the time limit, it would wait forever.
            with _settings(self._spark, settings):
                return writer.start()
        finally:
            context.setLocalProperty(_POOL, pool)  # type: ignore[arg-type]

    def start_once(self, values: Values) -> StreamingQuery:
        """Run a single trigger. It leaves a snapshot of the state, so that the next reader need not replay changes."""
        once = {**values, Knob(CHANGELOG_CHECKPOINTING, self._query): 0, Knob(ASYNC_PROGRESS, self._query): 0}
        return self.start(self.writer(once).trigger(once=True), once)

    def stop(self, query: StreamingQuery | None, *, for_good: bool = False) -> None:
        if query is None:
            return
        limit_s = LAST_STOP_S if for_good else STOP_S
        try:
            with _settings(self._spark, {_STOP_TIMEOUT: f"{limit_s:g}s"}):
                query.stop()
        except Exception as error:
            raise QueryError(f"the query did not stop: {first_line(error)}") from error


@contextmanager
def _settings(spark: SparkSession, settings: Mapping[str, str | Value | None]) -> Iterator[None]:
    """Change settings of the session for a while. None leaves a setting as it is."""
    with _session_settings:
        before = {key: spark.conf.get(key, None) for key, value in settings.items() if value is not None}
        for key in before:
            spark.conf.set(key, str(settings[key]))
        try:
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, value)
