"""Exports the state as Parquet files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

from homeostat.checkpoint.files import files_of
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.state_reader import Track, at_one_batch, no_tracking, table, tables_at, with_scheme
from homeostat.checkpoint.state_tables import pick
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.types import DataType


@dataclass(frozen=True, slots=True)
class Exported:
    batch: int
    target: str
    rows: Mapping[str, int]


def export(
    spark: SparkSession,
    checkpoint: Checkpoint,
    target: str,
    view: str | None = None,
    batch: int | None = None,
    track: Track = no_tracking,
) -> Exported:
    """Write one folder of Parquet files per table, or for one table, to an empty or new directory."""
    target = target.rstrip("/")
    files = files_of(target, spark)
    if files.exists(target) and any(True for _ in files.walk(target)):
        raise ConfigError("the directory is not empty", where=target, fix="choose an empty or a new directory")

    def write(chosen: int) -> dict[str, int]:
        available = tables_at(checkpoint, chosen)
        chosen_tables = available if view is None else [pick(available, view, checkpoint.location)]
        rows = {}
        for each in track(chosen_tables, "exporting"):
            place = with_scheme(f"{target}/{each.view}")
            # An earlier attempt may have written a batch that has since been removed.
            storable(table(spark, checkpoint, each, chosen)).write.mode("overwrite").parquet(place)
            rows[each.view] = spark.read.parquet(place).count()
        return rows

    chosen, rows = at_one_batch(checkpoint, batch, write)
    return Exported(chosen, target, rows)


def storable(frame: DataFrame) -> DataFrame:
    """Return the frame without columns that can only be null, such as those of deduplication: Parquet cannot store
    them."""
    return frame.select(*(name for name, kind in ((f.name, f.dataType) for f in frame.schema) if not _void(kind)))


def _void(kind: DataType) -> bool:
    from pyspark.sql.types import NullType, StructType

    return isinstance(kind, NullType) or (isinstance(kind, StructType) and all(_void(f.dataType) for f in kind.fields))
