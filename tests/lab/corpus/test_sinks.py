"""The function on the driver writes each batch, whatever else it is made to do."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.lab.corpus.sinks import sink_function
from homeostat.lab.corpus.switches import Switches

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.local_spark
def test_a_batch_is_written_also_with_each_fault(local_spark: SparkSession, tmp_path: Path) -> None:
    switches = Switches(tmp_path / "on")
    write = sink_function(switches, tmp_path / "out")
    rows = local_spark.range(5).selectExpr("id AS row", "concat('word-', id) AS word")
    for batch, (fault, strength) in enumerate([("sink-bound", 0.01), ("large-plan", 3.0), ("large-result", 10.0)]):
        switches.turn_on(fault, strength)
        write(rows, batch)
        switches.turn_off(fault)
        assert local_spark.read.parquet(str(tmp_path / "out" / f"batch-{batch}")).count() == 5
