"""Settings of Spark that can be switched on or off with a restart of a query, and why some queries do not allow this.

The bound on the memory of RocksDB is not among them: an executor reads it once, when its first store opens.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import ASYNC_PROGRESS, CHANGELOG_CHECKPOINTING, Knob, Value
from homeostat.spark.act.query_launcher import CHANGELOG

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# Sinks that write a batch again after a failure, regardless of the log of offsets. Spark also allows the sinks of
# `foreach` and `memory`, but code behind these may rely on a batch having the same rows when it is repeated.
ASYNC_SINKS = {"KafkaTable": "kafka", "noop-table": "noop", "console": "console"}
_ASYNC_EXECUTION = "AsyncProgressTracking"


def switch_values(spark: SparkSession, query: StreamingQuery | None, name: str) -> dict[Knob, Value]:
    """The values with which a query has just started, without those that the application sets itself."""
    changelog = str(spark.conf.get(CHANGELOG, "false")).lower() == "true"
    values: dict[Knob, Value] = {Knob(CHANGELOG_CHECKPOINTING, name): int(changelog)}
    if query is not None and not _tracks_async(query):
        values[Knob(ASYNC_PROGRESS, name)] = 0
    return values


def async_refusal(query: StreamingQuery | None) -> str:
    """Why the sink of this query does not allow asynchronous progress tracking; empty if it does."""
    sink = _sink(query)
    if sink in ASYNC_SINKS:
        return ""
    *others, last = ASYNC_SINKS.values()
    return f"only the sinks {', '.join(others)} and {last} support it; the sink of this query is {sink or 'unknown'}"


def _sink(query: StreamingQuery | None) -> str:
    try:
        java_sink: Any = query._jsq.streamingQuery().sink()  # type: ignore[union-attr]
    except Exception:  # a private interface of Spark
        return ""
    try:
        return str(java_sink.name())
    except Exception:  # older sinks have no name
        return str(java_sink.getClass().getSimpleName())


def _tracks_async(query: StreamingQuery) -> bool:
    try:
        return str(query._jsq.streamingQuery().getClass().getSimpleName()).startswith(_ASYNC_EXECUTION)
    except Exception:
        return False
