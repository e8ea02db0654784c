"""Compares two states, and shows the changes that batches made."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.state_reader import Rows, at_one_batch, collect_rows, committed_batch, load, table, tables_at
from homeostat.checkpoint.state_tables import TIMERS, Table, pick
from homeostat.checkpoint.store_files import store_path, version_after
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

ADDED, REMOVED, CHANGED = "added", "removed", "changed"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"


@dataclass(frozen=True, slots=True)
class Side:
    """One of two states to compare: a checkpoint at a batch, or at the latest committed one."""

    checkpoint: Checkpoint
    batch: int | None = None


@dataclass(frozen=True, slots=True)
class Difference:
    """The numbers of added, removed and changed keys of a table, with the first ones as examples."""

    view: str
    counts: Mapping[str, int]
    examples: Rows


def diff(spark: SparkSession, before: Side, after: Side, view: str | None, limit: int) -> list[Difference]:
    """Return the keys that were added, removed or changed from one state to the other, by table."""

    def read_before(old: int) -> list[Difference]:
        return at_one_batch(after.checkpoint, after.batch, lambda new: _differences(old, new))[1]

    def _differences(old: int, new: int) -> list[Difference]:
        before_tables = {each.view: each for each in tables_at(before.checkpoint, old)}
        after_tables = {each.view: each for each in tables_at(after.checkpoint, new)}
        both = {name: each for name, each in before_tables.items() if name in after_tables}
        if view is not None:
            pick([*both.values()], view, after.checkpoint.location)
        names = [name for name in both if view in (None, name)]
        if not names:
            raise ConfigError(
                "the two states have no table in common",
                where=after.checkpoint.location,
                fix="compare two batches of one query",
            )
        differences = []
        for name in names:
            earlier = by_key(table(spark, before.checkpoint, before_tables[name], old))
            later = by_key(table(spark, after.checkpoint, after_tables[name], new))
            differences.append(_difference(name, earlier, later, new, limit))
        return differences

    return at_one_batch(before.checkpoint, before.batch, read_before)[1]


def by_key(frame: DataFrame) -> DataFrame:
    """Return one row per key: the key and everything stored under it as text, sorted."""
    from pyspark.sql import functions as f

    whole = {"ignoreNullFields": "false"}
    rest = [name for name in frame.columns if name not in ("key", "partition_id")]
    stored = f.to_json(f.struct(*rest), whole)
    return frame.groupBy(f.to_json("key", whole).alias("key")).agg(
        f.concat_ws(" ", f.sort_array(f.collect_list(stored))).alias("kept")
    )


def _difference(view: str, before: DataFrame, after: DataFrame, batch: int, limit: int) -> Difference:
    from pyspark.sql import functions as f

    both_sides = before.withColumnRenamed("kept", "before").join(
        after.withColumnRenamed("kept", "after"), "key", "full"
    )
    change = f.when(f.col("before").isNull(), ADDED).when(f.col("after").isNull(), REMOVED).otherwise(CHANGED)
    unlike = both_sides.where("NOT (before <=> after)").select(change.alias("change"), "key", "before", "after").cache()
    try:
        counts = {str(row[0]): int(row[1]) for row in unlike.groupBy("change").count().collect()}
        examples = collect_rows(unlike.orderBy("change", "key"), batch, limit)
    finally:
        unlike.unpersist()
    return Difference(view, {each: counts.get(each, 0) for each in (ADDED, REMOVED, CHANGED)}, examples)


def changes(
    spark: SparkSession, checkpoint: Checkpoint, view: str | None, first: int | None, last: int | None, limit: int
) -> Rows:
    """Return the changes that the batches from `first` to `last` wrote to a table; by default the latest batch."""

    def read(chosen: int) -> Rows:
        begin = committed_batch(checkpoint, chosen if first is None else first)
        if begin > chosen:
            raise ConfigError(
                f"batch {begin} comes after batch {chosen}", where="--from", fix=f"choose at most {chosen}"
            )
        chosen_table = pick(tables_at(checkpoint, chosen), view, checkpoint.location)
        _require_changes(checkpoint, chosen_table, begin, chosen)
        options = {"readChangeFeed": True, "changeStartBatchId": begin, "changeEndBatchId": chosen}
        frame = load(spark, checkpoint, chosen_table, chosen, options)
        return collect_rows(frame.orderBy("batch_id", "partition_id"), chosen, limit)

    return at_one_batch(checkpoint, last, read)[1]


def _require_changes(checkpoint: Checkpoint, of: Table, first: int, last: int) -> None:
    """Spark's change feed reads the files of changes. A batch that wrote a whole snapshot instead has none."""
    if of.kind in ("join", TIMERS):
        what = "of timers" if of.kind == TIMERS else "of a join"
        raise ConfigError(
            f"Spark has no change feed {what}", where=checkpoint.location, fix="compare two batches with `state diff`"
        )
    operator = checkpoint.operator(of.operator, last)
    for partition in range(operator.partitions):
        for store in operator.stores:
            files = checkpoint.store_files(operator.id, partition, store)
            versions = {file.version for file in files if file.kind == "changes"}
            for batch in range(first, last + 1):
                if version_after(batch) not in versions:
                    raise ConfigError(
                        f"batch {batch} wrote no file of changes to {store_path(operator.id, partition, store)}",
                        where=checkpoint.location,
                        fix=f"compare two batches with `state diff`; RocksDB writes changes if {CHANGELOG} is true",
                    )
