"""Starts the queries that an application hands over to `hs.attach`, so that they can be restarted."""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.core.errors import ConfigError
from homeostat.core.objective import Objective
from homeostat.spark.act.managed_query import Bounds
from homeostat.spark.application_query import ApplicationQuery, represented
from homeostat.spark.pipeline import (
    ending_trigger,
    valid_name,
    written_checkpoint,
    written_name,
    written_trigger_s,
)

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

WHERE = "hs.attach"
_CHECKPOINTS = "spark.sql.streaming.checkpointLocation"


class Handover:
    """`build` makes the writer of the query `name`. It is called once now, and again for each restart."""

    def __init__(self, spark: SparkSession, name: str, build: Callable[..., Any]) -> None:
        if not valid_name(name):
            raise ConfigError(
                f"{name!r} is not a valid name for a query",
                where=WHERE,
                fix="use letters, digits, spaces, dots or hyphens",
            )
        self.name, self._spark = name, spark
        takes_session = bool(inspect.signature(build).parameters)
        self._build: Callable[[], Any] = (lambda: build(spark)) if takes_session else build
        self.writer = _writer(self._build(), name)
        self._next: DataStreamWriter | None = self.writer

    @classmethod
    def of_writer(cls, spark: SparkSession, writer: Any, name: str) -> Handover:
        """For a writer that is already built. The same writer can be started again for each restart."""
        own = written_name(_writer(writer, name))
        if not (name or own):
            raise ConfigError(
                "the query has no name", where=WHERE, fix='call start(writer, name="…"), or queryName("…")'
            )
        return cls(spark, name or own, lambda: writer)

    @property
    def refusal(self) -> str:
        """Why the query cannot be restarted; empty if it can."""
        if ending := ending_trigger(self.writer):
            return f"its trigger {ending} ends it"
        if math.isnan(written_trigger_s(self.writer)):
            return "its trigger has no interval"
        return "" if self._location else "it has no checkpointLocation"

    def start(self, directory: Path, objective: Objective, bounds: Bounds) -> ApplicationQuery:
        query = ApplicationQuery(represented(self.name, objective=objective), directory, {})
        query.take_over(self._spark, self._writer_again, self._location, bounds)
        return query

    def start_plainly(self) -> Any:
        return self.writer.queryName(self.name).start()

    def _writer_again(self) -> DataStreamWriter:
        writer, self._next = self._next, None
        return writer if writer is not None else _writer(self._build(), self.name)

    @property
    def _location(self) -> str:
        """The checkpoint location that Spark would choose; empty if there is none."""
        if own := written_checkpoint(self.writer):
            return own
        root = str(self._spark.conf.get(_CHECKPOINTS, "") or "")
        return f"{root.rstrip('/')}/{written_name(self.writer) or self.name}" if root else ""


def _writer(built: Any, name: str) -> Any:
    if hasattr(built, "foreachBatch"):
        return built
    raise ConfigError(
        f"query {name} requires a writer, not {type(built).__name__}",
        where=WHERE,
        fix="return df.writeStream…, without start()",
    )
