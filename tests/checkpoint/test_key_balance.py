"""What the loop is told about the keys of a real state is what its partitions hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint import raw_rows
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.spark.sense.key_balance import read_balance

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

PARTITIONS, WORDS = 3, 12


@pytest.mark.parametrize("kind", ["counts", "unique"])
def test_the_largest_part_over_the_mean_one(
    spark: SparkSession, checkpoint_of: Callable[[str], Path], kind: str
) -> None:
    at = Checkpoint(str(checkpoint_of(kind)), LocalFiles())
    (sizes,) = raw_rows.partition_sizes(spark, at, at.batches().finished).values()

    balance = read_balance(spark, at)

    assert balance is not None
    assert balance.imbalance[PARTITIONS] == pytest.approx(max(rows for rows, _ in sizes) / (WORDS / PARTITIONS))
    assert balance.imbalance[1] == 1.0
    assert max(balance.imbalance) >= 4 * PARTITIONS


def test_a_query_that_has_done_no_batch_has_no_keys(spark: SparkSession, tmp_path: Path) -> None:
    assert read_balance(spark, Checkpoint(str(tmp_path), LocalFiles())) is None
