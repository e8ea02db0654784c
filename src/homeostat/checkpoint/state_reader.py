"""Reads the state in a checkpoint as tables, through Spark's state reader. Each answer is for one committed batch."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Protocol, TypeVar

from homeostat.checkpoint.damage import Damage, find_damage, require_sound
from homeostat.checkpoint.files import is_local, local_path
from homeostat.checkpoint.metadata import CODEC, PROVIDER, Batches, Checkpoint
from homeostat.checkpoint.old_layout import lack_of
from homeostat.checkpoint.read_only_sql import require_query
from homeostat.checkpoint.state_tables import ONLY, Table, pick, tables
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

_FORMAT_VERSION = "spark.sql.streaming.stateStore.checkpointFormatVersion"
# Attempts to read the newest batch. Each fails only if the running query removed the batch meanwhile. A choice.
TRIES = 4
# Spark escapes these characters in a path and never unescapes them.
ESCAPED = frozenset(' "%<>[]\\^`{|}#?')
Answer = TypeVar("Answer")
Item = TypeVar("Item")


class Track(Protocol):
    """Passes items on and may show the progress."""

    def __call__(self, items: Sequence[Item], what: str) -> Iterable[Item]: ...


def no_tracking(items: Sequence[Item], what: str) -> Iterable[Item]:
    return items


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows as JSON values, and the batch to whose state they belong."""

    batch: int
    columns: tuple[str, ...]
    rows: tuple[Mapping[str, Any], ...]
    more: bool


@dataclass(frozen=True, slots=True)
class TableDescription:
    view: str
    name: str
    kind: str
    key: str
    value: str
    rows: int
    rows_by_partition: Mapping[int, int]


@dataclass(frozen=True, slots=True)
class OperatorDescription:
    id: int
    name: str
    partitions: int
    bytes: int
    tables: tuple[TableDescription, ...]
    inferred: bool = False


@dataclass(frozen=True, slots=True)
class Description:
    """The content of `homeostat state ls`. `note` says why the tables of a sound checkpoint are not shown."""

    location: str
    query_id: str | None
    batch: int
    kept: tuple[int, ...]
    batches: Batches
    open_repartition: int | None
    written_by: str | None
    backend: str | None
    codec: str | None
    state_bytes: int
    damage: tuple[Damage, ...]
    operators: tuple[OperatorDescription, ...] = ()
    note: str = ""

    @property
    def readable(self) -> bool:
        """Whether there is state that Spark can read."""
        return not self.damage and not self.note and self.state_bytes > 0 and self.batch >= 0


class ReadError(HomeostatError):
    """Spark's state reader failed."""

    def __init__(self, what: str, checkpoint: Checkpoint) -> None:
        super().__init__(what, where=checkpoint.location)


def table(spark: SparkSession, checkpoint: Checkpoint, of: Table, batch: int) -> DataFrame:
    """Return a table with the columns `key`, `value` and `partition_id`.

    Lists, maps and timers have the columns of Spark's state reader.
    """
    frame = load(spark, checkpoint, of, batch, {"batchId": batch})
    return _as_declared(frame) if of.kind == "join" else frame


def load(
    spark: SparkSession, checkpoint: Checkpoint, of: Table, batch: int, options: Mapping[str, int | bool]
) -> DataFrame:
    reader = spark.read.format("statestore").options(operatorId=of.operator, **of.options, **options)
    with in_the_format_of(spark, checkpoint, batch):
        return reader.load(spark_path(checkpoint.spark_location))


@contextmanager
def in_the_format_of(spark: SparkSession, checkpoint: Checkpoint, batch: int) -> Iterator[None]:
    """Set the session to the file format of a batch: Spark takes the format from the session, not the checkpoint."""
    version = "2" if checkpoint.unique_ids(batch) else "1"
    before = str(spark.conf.get(_FORMAT_VERSION))
    if version == before:
        yield
        return
    spark.conf.set(_FORMAT_VERSION, version)
    try:
        yield
    finally:
        spark.conf.set(_FORMAT_VERSION, before)


def _as_declared(frame: DataFrame) -> DataFrame:
    """Drop the extra field of a join's values: Spark's reader does not declare it, and functions fail on it."""
    from pyspark.sql import functions as f

    fields = [f.col(f"value.`{name}`").alias(name) for name in frame.select("value.*").columns]
    return frame.select("key", f.struct(*fields).alias("value"), "partition_id")


def spark_path(location: str) -> str:
    """Return the location of a checkpoint as Spark's state reader needs it."""
    path = with_scheme(location)
    if unusable := sorted(ESCAPED & {*path}):
        raise ConfigError(
            f"Spark's state reader cannot open a path that contains {' or '.join(map(repr, unusable))}",
            where=location,
            fix="make a symbolic link to the checkpoint under another name",
        )
    return path


def with_scheme(location: str) -> str:
    """Return the location with its scheme, independent of Spark's default file system."""
    return f"file://{local_path(location).absolute()}" if is_local(location) else location


def at_one_batch(checkpoint: Checkpoint, batch: int | None, read: Callable[[int], Answer]) -> tuple[int, Answer]:
    """Call `read` with this batch, or with the latest committed one, and return the batch and the answer.

    A running query removes old batches. If the batch disappears while it is read, a newer one is read from the start,
    unless you asked for the batch by number. An answer never mixes two batches.
    """
    from py4j.protocol import Py4JError
    from pyspark.errors import PySparkException

    require_readable(checkpoint)
    for tries_left in reversed(range(TRIES if batch is None else 1)):
        chosen = committed_batch(checkpoint, batch)
        require_sound(checkpoint, chosen)
        try:
            return chosen, read(chosen)
        except (PySparkException, Py4JError, FileNotFoundError) as error:
            was_removed = chosen not in checkpoint.committed_batches() or bool(find_damage(checkpoint, chosen))
            if not was_removed:
                raise ReadError(f"Spark cannot read batch {chosen}: {first_line(error)}", checkpoint) from error
            if not tries_left:
                raise ReadError(
                    f"the query removed batch {chosen} while it was being read; try again", checkpoint
                ) from error
    raise AssertionError("unreachable")


def require_readable(checkpoint: Checkpoint) -> None:
    """Raise ConfigError if the checkpoint lacks data that Spark's state reader needs."""
    if lack := lack_of(checkpoint):
        raise ConfigError(lack.reason, where=checkpoint.location, fix=lack.fix)


def committed_batch(checkpoint: Checkpoint, batch: int | None = None) -> int:
    """Return the batch if it is committed and kept; by default the latest one."""
    kept_batches = checkpoint.committed_batches()
    if not kept_batches:
        raise ConfigError(
            "no batch has been committed yet", where=checkpoint.location, fix="let the query finish its first batch"
        )
    if batch is None:
        return kept_batches[-1]
    if batch not in kept_batches:
        raise ConfigError(
            f"the checkpoint no longer has batch {batch}, or never had it",
            where=checkpoint.location,
            fix=f"choose one of {spans(kept_batches)}",
        )
    return batch


def tables_at(checkpoint: Checkpoint, batch: int) -> list[Table]:
    available = tables(checkpoint, batch)
    if not available:
        raise ConfigError("this query has no state", where=checkpoint.location, fix="choose a query with state")
    return available


def show(spark: SparkSession, checkpoint: Checkpoint, view: str | None, batch: int | None, limit: int) -> Rows:
    """Return the first rows of a table."""

    def read(chosen: int) -> Rows:
        description = pick(tables_at(checkpoint, chosen), view, checkpoint.location)
        return collect_rows(table(spark, checkpoint, description, chosen), chosen, limit)

    return at_one_batch(checkpoint, batch, read)[1]


def query(spark: SparkSession, checkpoint: Checkpoint, sql: str, batch: int | None, limit: int) -> Rows:
    """Run a query in which every table of the checkpoint is a view. A single table is also called `state`.

    Anything but a query is refused before Spark runs it.
    """
    from pyspark.errors import AnalysisException

    def read(chosen: int) -> Rows:
        session = spark.newSession()
        require_query(session, sql)
        available = tables_at(checkpoint, chosen)
        for each in available:
            frame = table(session, checkpoint, each, chosen)
            frame.createOrReplaceTempView(f"`{each.view}`")
            if len(available) == 1:
                frame.createOrReplaceTempView(ONLY)
        try:
            answer = session.sql(sql)
        except AnalysisException as error:
            views = ", ".join(each.view for each in available)
            raise ConfigError(first_line(error), where="SQL", fix=f"use these tables: {views}") from None
        return collect_rows(answer, chosen, limit)

    return at_one_batch(checkpoint, batch, read)[1]


def collect_rows(frame: DataFrame, batch: int, limit: int) -> Rows:
    """Return the first rows. It reads one more, to know whether there are more."""
    from pyspark.sql import functions as f

    names = tuple(frame.columns)
    text = f.to_json(f.struct(*(f.col(f"`{name}`") for name in names)), {"ignoreNullFields": "false"})
    rows = [json.loads(row[0]) for row in frame.limit(limit + 1).select(text).collect()]
    return Rows(batch, names, tuple(rows[:limit]), len(rows) > limit)


def outline(checkpoint: Checkpoint, batch: int | None = None) -> Description:
    """Describe a checkpoint from its files, without Spark. Lists operators only if Spark cannot read their tables."""
    damage = tuple(find_damage(checkpoint, batch))
    settings = {} if damage else checkpoint.settings()
    lack = None if damage else lack_of(checkpoint)
    return Description(
        location=checkpoint.location,
        query_id=None if damage else checkpoint.query_id(),
        batch=checkpoint.batches().finished if batch is None else committed_batch(checkpoint, batch),
        kept=tuple(checkpoint.committed_batches()),
        batches=checkpoint.batches(),
        open_repartition=None if damage else checkpoint.open_repartition(),
        written_by=None if damage else checkpoint.written_by(),
        backend=_backend(settings.get(PROVIDER)),
        codec=settings.get(CODEC),
        state_bytes=_bytes_below(checkpoint, "state"),
        damage=damage,
        operators=tuple(_operators_without_tables(checkpoint)) if lack else (),
        note=f"{lack.reason}; {lack.fix}" if lack else "",
    )


def _operators_without_tables(checkpoint: Checkpoint) -> Iterator[OperatorDescription]:
    for id in checkpoint.operators():
        operator = checkpoint.operator(id)
        disk_bytes = _bytes_below(checkpoint, "state", id)
        yield OperatorDescription(id, operator.name, operator.partitions, disk_bytes, (), operator.inferred)


def describe(
    spark: SparkSession, checkpoint: Checkpoint, batch: int | None = None, track: Track = no_tracking
) -> Description:
    """Describe a checkpoint completely, except for its rows."""
    description = outline(checkpoint, batch)
    if not description.readable:
        return description
    chosen, operators = at_one_batch(
        checkpoint, batch, lambda number: tuple(_operators(spark, checkpoint, number, track))
    )
    return replace(description, batch=chosen, operators=operators)


def _operators(spark: SparkSession, checkpoint: Checkpoint, batch: int, track: Track) -> Iterable[OperatorDescription]:
    descriptions = [
        (each.operator, _describe(table(spark, checkpoint, each, batch), each))
        for each in track(tables(checkpoint, batch), "reading the state")
    ]
    for id in checkpoint.operators():
        operator = checkpoint.operator(id, batch)
        inner = tuple(description for number, description in descriptions if number == id)
        disk_bytes = _bytes_below(checkpoint, "state", id)
        yield OperatorDescription(id, operator.name, operator.partitions, disk_bytes, inner, operator.inferred)


def _describe(frame: DataFrame, of: Table) -> TableDescription:
    counts = {int(row[0]): int(row[1]) for row in frame.groupBy("partition_id").count().collect()}
    types = {field.name: field.dataType.simpleString() for field in frame.schema}
    key = types.pop("key", "")
    types.pop("partition_id")
    value = ", ".join(kind if name == "value" else f"{name} {kind}" for name, kind in types.items())
    return TableDescription(of.view, of.name, of.kind, key, value, sum(counts.values()), dict(sorted(counts.items())))


def _bytes_below(checkpoint: Checkpoint, *parts: object) -> int:
    return sum(entry.size for entry in checkpoint.files.walk(checkpoint.path(*parts)))


def _backend(provider: str | None) -> str | None:
    """
    >>> _backend("org.apache.spark.sql.execution.streaming.state.RocksDBStateStoreProvider")
    'RocksDB'
    """
    return provider and provider.rpartition(".")[2].removesuffix("StateStoreProvider")


def spans(numbers: Sequence[int]) -> str:
    """
    >>> spans([3, 4, 5, 9])
    '3 to 5, 9'
    """
    parts: list[list[int]] = []
    for number in numbers:
        if parts and number == parts[-1][-1] + 1:
            parts[-1] = [parts[-1][0], number]
        else:
            parts.append([number])
    return ", ".join(" to ".join(map(str, part)) for part in parts)
