"""The partitions and keys with the most data, found without touching the checkpoint."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint import state_reader
from homeostat.checkpoint.largest_keys import top
from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


@pytest.mark.parametrize("kind", ["counts", "counts-hdfs", "counts-ids", "pairs"])
def test_reading_leaves_the_checkpoint_as_it_was(kind: str, spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of(kind)
    before = {str(each): each.stat().st_mtime_ns for each in path.rglob("*")}
    state_reader.describe(spark, opened(path), 1)
    top(spark, opened(path), None, None, 1)
    assert {str(each): each.stat().st_mtime_ns for each in path.rglob("*")} == before


def test_where_the_state_is(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    weights = top(spark, opened(checkpoint_of("processor")), "amounts", None, 3)
    assert [key.rows for key in weights.keys] == [2, 2, 2]
    assert all(key.text_bytes > 0 for key in weights.keys)
    rows = [partition.rows for partition in weights.partitions]
    assert rows == sorted(rows, reverse=True)
    assert sum(rows) == 23
    assert all(partition.disk_bytes > 0 for partition in weights.partitions)
