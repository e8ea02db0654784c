"""`ctx.watched` on Spark: the progress tells the largest keys of rows that are handed on as they are."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.core.errors import ConfigError
from homeostat.spark.pipeline import Context
from homeostat.spark.sense.progress import read_progress

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WaitUntil = Callable[[Callable[[], bool], str], None]
ROWS = KEYS = 40_000


def context(spark: SparkSession, home: Path) -> Context:
    return Context(spark, "words", {}, home, home / "control.json")


def test_the_largest_keys_are_found_among_more_than_the_sketch_can_hold(
    spark: SparkSession, tmp_path: Path, wait_until: WaitUntil
) -> None:
    ctx = context(spark, tmp_path)
    stream = spark.readStream.format("rate-micro-batch").option("rowsPerBatch", str(ROWS)).load()
    rows = stream.selectExpr(f"if(value % 10 < 3, -1, if(value % 10 < 5, NULL, value % {KEYS})) AS key", "value")
    query = ctx.watched(rows, "sessions", key="key").writeStream.format("noop").start()
    try:
        wait_until(lambda: len(query.recentProgress) > 1, "batches are done")
        key_loads = [read_progress(json.loads(progress.json)).keys for progress in query.recentProgress]
    finally:
        query.stop()
    load = next(keys["sessions"] for keys in key_loads if keys["sessions"].rows)
    assert ctx.steps.watches == ("sessions",)
    assert (load.rows, load.key) == (ROWS, "-1")
    assert load.share == pytest.approx(0.3, abs=0.002)
    assert load.next_rows[0] / ROWS == pytest.approx(0.2, abs=0.002)
    assert load.hot_share(8) == pytest.approx(0.5, abs=0.004)


def test_a_column_that_is_not_there_is_refused(spark: SparkSession, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"ctx.watched\('x'\): unknown column 'user' \(use one of id\)"):
        context(spark, tmp_path).watched(spark.range(3), "x", key="user")
