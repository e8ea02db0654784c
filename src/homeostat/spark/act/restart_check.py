"""Checks whether an application can continue from a checkpoint, on a copy of it and with a sink that drops rows."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any
from uuid import uuid4

from homeostat.checkpoint.damage import require_sound
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.configuration import EXECUTORS, Knob
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark.act.query_launcher import Build, Values
from homeostat.spark.pipeline import Context, Pipeline, build_writer
from homeostat.spark.sense.source_offsets import older_source
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SINK = "noop"
_CLEANS = "cleanSource"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`batch` is the batch that ran on the copy, None if none did."""

    starts: bool
    batch: int | None
    reason: str


def try_start(spark: SparkSession, checkpoint: Checkpoint, pipeline: Pipeline, limit_s: float) -> Verdict:
    """Run the last batch again on the copy, because Spark reads and checks the state only during a batch."""
    require_sound(checkpoint)
    with _copy(checkpoint) as copy, TemporaryDirectory(prefix="homeostat-check-") as directory:
        repeated = _reopen_last_batch(copy)
        query = _query(spark, copy, pipeline, Path(directory))
        try:
            query.start(Deadline.after(limit_s))
            return _verdict(query, repeated, limit_s)
        except (ConfigError, QueryError) as error:
            return Verdict(False, None, error.what.replace(copy.location, checkpoint.location))
        finally:
            query.stop()


def open_batch_finished(spark: SparkSession, checkpoint: Checkpoint, pipeline: Pipeline, limit_s: float) -> None:
    """Finish the open batch, and only that, with the application's own sink."""
    with TemporaryDirectory(prefix="homeostat-finish-") as directory:
        query = ManagedQuery(
            spark, pipeline.name, _builder(spark, pipeline, Path(directory)), checkpoint.location, _values(pipeline)
        )
        try:
            query.finish_open_batch(Deadline.after(limit_s))
        except Exception as error:
            raise HomeostatError(f"the open batch failed: {first_line(error)}", where=checkpoint.location) from error
        if checkpoint.batches().one_is_open:
            raise HomeostatError("the open batch did not finish", where=checkpoint.location)


def _verdict(query: ManagedQuery, repeated: bool, limit_s: float) -> Verdict:
    batch = query.batches()
    if batch >= 0:
        which = f"repeated batch {batch}" if repeated else f"finished the open batch {batch}"
        return Verdict(True, batch, f"the query {which} on a copy of the checkpoint")
    if query.active:
        progress = f"the query started, but finished no batch within {limit_s:g} s"
        return Verdict(True, None, f"{progress}, so its state was not checked")
    return Verdict(False, None, "the query ended without an error")


@contextmanager
def _copy(checkpoint: Checkpoint) -> Iterator[Checkpoint]:
    """Beside the checkpoint, where links are possible."""
    files = checkpoint.files
    copy = Checkpoint(f"{checkpoint.location}.trial-{uuid4().hex[:8]}", files)
    try:
        for entry in files.walk(checkpoint.location):
            with suppress(FileNotFoundError):  # a running query deletes old files meanwhile
                files.same(checkpoint.path(entry.name), copy.path(entry.name))
        yield copy
    finally:
        files.delete(copy.location)
        files.delete(f"{copy.location}.lock")


def _reopen_last_batch(copy: Checkpoint) -> bool:
    """Delete the commit of the last batch, so that Spark runs it again. Returns whether it did. An open batch runs
    anyway, and a batch that changed the number of partitions cannot be run again like this."""
    batches = copy.batches()
    if batches.one_is_open or batches.finished < 0:
        return False
    last = batches.finished
    if last - 1 in copy.begun_batches() and copy.state_partitions(last) != copy.state_partitions(last - 1):
        return False
    copy.files.delete(copy.path("commits", last))
    copy.files.delete(copy.path("commits", f".{last}.crc"))
    return True


def _query(spark: SparkSession, copy: Checkpoint, pipeline: Pipeline, directory: Path) -> ManagedQuery:
    build = _builder(spark, pipeline, directory)

    def into_nothing(values: Values) -> DataStreamWriter:
        writer = build(values)
        _refuse_cleaning(writer)
        return writer.format(SINK)

    return ManagedQuery(spark, f"trial-{pipeline.name}", into_nothing, copy.location, _values(pipeline))


def _builder(spark: SparkSession, pipeline: Pipeline, directory: Path) -> Build:
    def build(values: Values) -> DataStreamWriter:
        context = Context(spark, pipeline.name, values, directory, directory / "control.json")
        writer: DataStreamWriter = build_writer(pipeline, context)
        return writer

    return build


def _values(pipeline: Pipeline) -> Values:
    return {Knob(kind, pipeline.name): value for kind, value in pipeline.start.items() if kind != EXECUTORS}


def _refuse_cleaning(writer: Any) -> None:
    """Refuse a file source that deletes the files of finished batches: it would delete them for the copy, too."""
    leaves = writer._df._jdf.queryExecution().analyzed().collectLeaves().iterator()
    while leaves.hasNext():
        source = older_source(leaves.next())
        cleans = (source.option(_CLEANS) if source is not None else "") or "off"
        if cleans.lower() != "off":
            raise ConfigError(
                f"the source sets {_CLEANS} = {cleans}: the check would delete files",
                fix="remove the option for the check",
            )
