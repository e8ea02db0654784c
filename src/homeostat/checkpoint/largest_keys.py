"""Finds the largest partitions of a state, and the keys with the most data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.state_reader import at_one_batch, table, tables_at
from homeostat.checkpoint.state_tables import Table, pick

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession


@dataclass(frozen=True, slots=True)
class PartitionWeight:
    """The rows of a partition, and its bytes on disk in all versions that are kept."""

    operator: int
    partition: int
    rows: int
    disk_bytes: int


@dataclass(frozen=True, slots=True)
class KeyWeight:
    """The size of a key is that of its rows as JSON: an estimate that is good enough to compare keys."""

    view: str
    key: str
    rows: int
    text_bytes: int
    partition: int


@dataclass(frozen=True, slots=True)
class Weights:
    batch: int
    partitions: tuple[PartitionWeight, ...]
    keys: tuple[KeyWeight, ...]


def top(spark: SparkSession, checkpoint: Checkpoint, view: str | None, batch: int | None, limit: int) -> Weights:
    """Return the largest partitions and keys of one table or of all."""

    def read(chosen: int) -> Weights:
        available = tables_at(checkpoint, chosen)
        chosen_tables = available if view is None else [pick(available, view, checkpoint.location)]
        frames = [(each, table(spark, checkpoint, each, chosen)) for each in chosen_tables]
        partitions = sorted(
            _partitions(checkpoint, frames), key=lambda each: (-each.rows, each.operator, each.partition)
        )
        keys = [key for each, frame in frames for key in _keys(each, frame, limit)]
        heaviest = sorted(keys, key=lambda key: (-key.text_bytes, key.key))
        return Weights(chosen, tuple(partitions[:limit]), tuple(heaviest[:limit]))

    return at_one_batch(checkpoint, batch, read)[1]


def _partitions(checkpoint: Checkpoint, frames: Sequence[tuple[Table, DataFrame]]) -> list[PartitionWeight]:
    rows: dict[tuple[int, int], int] = {}
    for each, frame in frames:
        for partition, count in frame.groupBy("partition_id").count().collect():
            rows[each.operator, partition] = rows.get((each.operator, partition), 0) + count
    return [
        PartitionWeight(operator, partition, count, _disk_bytes(checkpoint, operator, partition))
        for (operator, partition), count in rows.items()
    ]


def _disk_bytes(checkpoint: Checkpoint, operator: int, partition: int) -> int:
    return sum(entry.size for entry in checkpoint.files.walk(checkpoint.path("state", operator, partition)))


def _keys(of: Table, frame: DataFrame, limit: int) -> list[KeyWeight]:
    from pyspark.sql import functions as f

    size = f.octet_length(f.to_json(f.struct(*frame.columns)))
    by_key = frame.groupBy(f.to_json("key").alias("key")).agg(
        f.count("*").alias("rows"), f.sum(size).alias("bytes"), f.min("partition_id").alias("partition")
    )
    heaviest = by_key.orderBy(f.desc("bytes"), "key").limit(limit).collect()
    return [KeyWeight(of.view, row["key"], row["rows"], row["bytes"], row["partition"]) for row in heaviest]
