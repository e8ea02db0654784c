"""Reads every row of a state as Spark's repartitioning does: all stores and column families, as bytes.

This uses an internal option of Spark's state reader, available since 4.2 and for RocksDB only. Tests compare it with
the public reader.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.state_reader import in_the_format_of, spark_path

if TYPE_CHECKING:
    from pyspark.sql import Column, DataFrame, SparkSession

_ALL_FAMILIES = "_readAllColumnFamilies"
# Stores read at the same time: small reads wait for the driver more than for the disk. A choice.
_READ_AT_ONCE = 4

Numbers = NDArray[np.int64]


class Part(NamedTuple):
    """A column family of a store: a state variable, or one side of a join."""

    operator: int
    store: str
    family: str


@dataclass(frozen=True, slots=True)
class Digest:
    """Two digests are equal if the rows are equal, in any order and partition.

    `misplaced` counts rows in the wrong partition for their key.
    """

    rows: int
    bytes: int
    checksum: int
    misplaced: int = 0


@dataclass(frozen=True, slots=True)
class Keys:
    """Rows and bytes for each hash of a partitioning key. The hash determines the partition."""

    hashes: Numbers
    rows: Numbers
    bytes: Numbers


def digests(spark: SparkSession, checkpoint: Checkpoint, batch: int) -> Mapping[Part, Digest]:
    """Return the digests of the state after this batch. Stores are read in parallel."""
    by_part: dict[Part, Digest] = {}
    with in_the_format_of(spark, checkpoint, batch), ThreadPoolExecutor(_READ_AT_ONCE) as pool:
        stores = list(_stores(checkpoint, batch))
        for part in pool.map(lambda store: _digest(spark, checkpoint, batch, *store), stores):
            by_part |= part
    return by_part


def keys(spark: SparkSession, checkpoint: Checkpoint, batch: int) -> Mapping[int, Keys]:
    """Return the keys of each operator. They take about 20 bytes per key."""
    from pyspark.sql import functions as f

    with in_the_format_of(spark, checkpoint, batch):
        return {
            operator: _collect(
                _union(_rows(spark, checkpoint, batch, operator, store) for store in stores)
                .groupBy("hash")
                .agg(f.count("*").alias("rows"), f.sum("bytes").alias("bytes"))
            )
            for operator, stores in _stores_by_operator(checkpoint, batch).items()
        }


def partition_sizes(spark: SparkSession, checkpoint: Checkpoint, batch: int) -> Mapping[int, list[tuple[int, int]]]:
    """Return the actual rows and bytes of each partition of an operator."""
    from pyspark.sql import functions as f

    by_operator: dict[int, list[tuple[int, int]]] = {}
    with in_the_format_of(spark, checkpoint, batch):
        for operator, store in _stores(checkpoint, batch):
            sizes = by_operator.setdefault(operator, [(0, 0)] * (checkpoint.state_partitions(batch) or 0))
            by_partition = _rows(spark, checkpoint, batch, operator, store).groupBy("partition")
            for row in by_partition.agg(f.count("*").alias("rows"), f.sum("bytes").alias("bytes")).collect():
                rows, size = sizes[row["partition"]]
                sizes[row["partition"]] = (rows + row["rows"], size + row["bytes"])
    return by_operator


def _digest(
    spark: SparkSession, checkpoint: Checkpoint, batch: int, operator: int, store: str
) -> Mapping[Part, Digest]:
    partitions = checkpoint.state_partitions(batch)
    sums = (
        _rows(spark, checkpoint, batch, operator, store)
        .groupBy("family")
        .agg(
            *_expressions(
                "count(*)",
                "sum(bytes)",
                "sum(CAST(checksum AS DECIMAL(20, 0)))",
                f"count_if(partition != pmod(hash, {partitions}))",
            )
        )
    )
    return {
        Part(operator, store, family): Digest(rows, size, int(checksum), misplaced)
        for family, rows, size, checksum, misplaced in sums.collect()
    }


def _rows(spark: SparkSession, checkpoint: Checkpoint, batch: int, operator: int, store: str) -> DataFrame:
    read = spark.read.format("statestore").option("batchId", batch).option("operatorId", operator)
    frame = read.option("storeName", store).option(_ALL_FAMILIES, "true").load(spark_path(checkpoint.spark_location))
    return frame.selectExpr(
        "column_family_name AS family",
        "spark_partition_id() AS partition",  # the reader has one partition per state partition
        "hash(partition_key) AS hash",
        "length(key_bytes) + length(value_bytes) AS bytes",
        "xxhash64(key_bytes, value_bytes) AS checksum",
    )


def _stores(checkpoint: Checkpoint, batch: int) -> Iterator[tuple[int, str]]:
    for operator, stores in _stores_by_operator(checkpoint, batch).items():
        for store in stores:
            yield operator, store


def _stores_by_operator(checkpoint: Checkpoint, batch: int) -> Mapping[int, tuple[str, ...]]:
    return {id: checkpoint.operator(id, batch).stores for id in checkpoint.operators()}


def _union(frames: Iterator[DataFrame]) -> DataFrame:
    whole = next(frames)
    for frame in frames:
        whole = whole.unionAll(frame)
    return whole


def _expressions(*texts: str) -> list[Column]:
    from pyspark.sql import functions as f

    return [f.expr(text) for text in texts]


def _collect(frame: DataFrame) -> Keys:
    table = frame.toArrow()
    return Keys(*(np.asarray(table[name], dtype=np.int64) for name in ("hash", "rows", "bytes")))
