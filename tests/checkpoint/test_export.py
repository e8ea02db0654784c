"""The state as Parquet files."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint.export import export
from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]

WORDS = [f"w{number:02d}" for number in range(12)]


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


def test_export_to_parquet(spark: SparkSession, checkpoint_of: CheckpointOf, tmp_path: Path) -> None:
    target = tmp_path / "exported"
    done = export(spark, opened(checkpoint_of("unique")), str(target))
    assert (done.batch, done.rows) == (3, {"state": 12})
    words = spark.read.parquet((target / "state").as_uri()).select("key.word").collect()
    assert sorted(row[0] for row in words) == WORDS
    with pytest.raises(ConfigError, match="the directory is not empty"):
        export(spark, opened(checkpoint_of("counts")), str(target))
