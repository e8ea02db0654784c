"""Would this application go on from that checkpoint? It is tried on a linked copy, with a sink that keeps nothing."""

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
from homeostat.spark.act.managed_query import Build, ManagedQuery, QueryError, Values
from homeostat.spark.pipeline import Context, Pipeline, built
from homeostat.spark.sense.source_offsets import older_source
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.readwriter import DataStreamWriter

SINK = "noop"
_CLEANS = "cleanSource"


@dataclass(frozen=True, slots=True)
class Verdict:
    """`batch` is the one that it did on the copy, None if it did none."""

    starts: bool
    batch: int | None
    reason: str


def try_start(spark: SparkSession, checkpoint: Checkpoint, pipeline: Pipeline, limit_s: float) -> Verdict:
    """The state is read and checked when a batch runs, so the last one is done again on the copy."""
    require_sound(checkpoint)
    with _copy(checkpoint) as copy, TemporaryDirectory(prefix="homeostat-check-") as made:
        repeated = _reopen_last_batch(copy)
        query = _query(spark, copy, pipeline, Path(made))
        try:
            query.start(Deadline.after(limit_s))
            return _verdict(query, repeated, limit_s)
        except (ConfigError, QueryError) as error:
            return Verdict(False, None, error.what.replace(copy.location, checkpoint.location))
        finally:
            query.stop()


def open_batch_finished(spark: SparkSession, checkpoint: Checkpoint, pipeline: Pipeline, limit_s: float) -> None:
    """Do the open batch for good, with the application's own sink, and nothing else."""
    with TemporaryDirectory(prefix="homeostat-finish-") as made:
        query = ManagedQuery(
            spark, pipeline.name, _builder(spark, pipeline, Path(made)), checkpoint.location, _values(pipeline)
        )
        try:
            query.finish_open_batch(Deadline.after(limit_s))
        except Exception as error:
            raise HomeostatError(f"the open batch fails: {first_line(error)}", where=checkpoint.location) from error
        if checkpoint.batches().one_is_open:
            raise HomeostatError("the open batch was not finished", where=checkpoint.location)


def _verdict(query: ManagedQuery, repeated: bool, limit_s: float) -> Verdict:
    done = query.batches()
    if done >= 0:
        what = "that was open" if not repeated else "again"
        return Verdict(True, done, f"it did batch {done} {what}, and {SINK} took its rows")
    if query.active:
        return Verdict(True, None, f"it runs, but did no batch within {limit_s:g} s: its state may not have been read")
    return Verdict(False, None, "it ended by itself")


@contextmanager
def _copy(checkpoint: Checkpoint) -> Iterator[Checkpoint]:
    """Beside the checkpoint, where links are possible."""
    files = checkpoint.files
    copy = Checkpoint(f"{checkpoint.location}.trial-{uuid4().hex[:8]}", files)
    try:
        for entry in files.walk(checkpoint.location):
            with suppress(FileNotFoundError):  # too old to be kept: a query that runs removed it meanwhile
                files.same(checkpoint.path(entry.name), copy.path(entry.name))
        yield copy
    finally:
        files.delete(copy.location)
        files.delete(f"{copy.location}.lock")


def _reopen_last_batch(copy: Checkpoint) -> bool:
    """Whether there was need for it: an open batch is done anyway, and a repartitioning can only be done by Spark."""
    batches = copy.batches()
    if batches.one_is_open or batches.finished < 0:
        return False
    last = batches.finished
    if last - 1 in copy.begun() and copy.state_partitions(last) != copy.state_partitions(last - 1):
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
        writer: DataStreamWriter = built(pipeline, context)
        return writer

    return build


def _values(pipeline: Pipeline) -> Values:
    return {Knob(kind, pipeline.name): value for kind, value in pipeline.start.items() if kind != EXECUTORS}


def _refuse_cleaning(writer: Any) -> None:
    """A file source may be told to remove what a committed batch has read, be it on a copy or not."""
    leaves = writer._df._jdf.queryExecution().analyzed().collectLeaves().iterator()
    while leaves.hasNext():
        source = older_source(leaves.next())
        cleans = (source.option(_CLEANS) if source is not None else "") or "off"
        if cleans.lower() != "off":
            raise ConfigError(
                f"its source has {_CLEANS} = {cleans}: a trial would remove files",
                fix="leave the option out for the check",
            )
