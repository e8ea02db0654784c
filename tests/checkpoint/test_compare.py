"""What differs between two batches or two checkpoints, and what batches changed."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint import compare
from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]

ALL = 1000


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


def total(batch: int) -> int:
    """File n has n + 1 of each word, but the first word is in the first file only."""
    return sum(number + 1 for number in range(batch + 1))


def test_diff_between_batches(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    checkpoint = opened(checkpoint_of("counts"))
    (difference,) = compare.diff(spark, compare.Side(checkpoint, 1), compare.Side(checkpoint, 3), None, 5)
    assert difference.counts == {"added": 0, "removed": 0, "changed": 11}
    assert len(difference.examples.rows) == 5
    first = difference.examples.rows[0]
    assert (first["change"], json.loads(first["key"])) == ("changed", {"word": "w01"})
    assert [*json.loads(first["before"])["value"].values()] == [total(1)]
    assert [*json.loads(first["after"])["value"].values()] == [total(3)]


def test_diff_between_checkpoints(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    """The same query on the other backend: nothing differs; at another batch of a join, keys are added."""
    one, other = opened(checkpoint_of("counts")), opened(checkpoint_of("counts-hdfs"))
    (difference,) = compare.diff(spark, compare.Side(one), compare.Side(other), None, 5)
    assert set(difference.counts.values()) == {0}
    assert difference.examples.rows == ()
    pairs = opened(checkpoint_of("pairs"))
    left, right = compare.diff(spark, compare.Side(pairs, 0), compare.Side(pairs), None, 5)
    assert left.view == "left_side"
    assert left.counts == right.counts == {"added": 0, "removed": 0, "changed": 11}


def test_the_change_feed(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    for kind in ("counts", "counts-hdfs"):
        checkpoint = opened(checkpoint_of(kind))
        rows = compare.changes(spark, checkpoint, None, 2, 3, ALL)
        assert [(row["batch_id"], row["change_type"]) for row in rows.rows] == [(2, "update")] * 11 + [
            (3, "update")
        ] * 11
    with pytest.raises(ConfigError, match=r"batch 1 wrote no file of changes to state/0/0.*changelogCheckpointing"):
        compare.changes(spark, opened(checkpoint_of("counts")), None, 1, 3, ALL)
    with pytest.raises(ConfigError, match="Spark has no change feed of a join"):
        compare.changes(spark, opened(checkpoint_of("pairs")), "left_side", None, None, ALL)
    with pytest.raises(ConfigError, match="batch 3 comes after batch 2"):
        compare.changes(spark, opened(checkpoint_of("counts")), None, 3, 2, ALL)
