"""Digests of a state tell a changed value under the same key."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint import raw_rows, rescale
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.rescale import RescaleError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]


def checkpoint(path: Path, files: LocalFiles | None = None) -> Checkpoint:
    return Checkpoint(str(path), files or LocalFiles())


def test_another_value_under_the_same_key_is_seen(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    at = checkpoint(checkpoint_of("counts"))
    last = at.batches().finished
    old, new = (raw_rows.digests(spark, at, batch) for batch in (last - 1, last))
    rescale.refuse_difference(new, new)
    with pytest.raises(
        RescaleError, match=r"the state has changed: operator 0, store default, default had 12 rows and now has 12"
    ):
        rescale.refuse_difference(old, new)
