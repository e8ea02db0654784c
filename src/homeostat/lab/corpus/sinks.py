"""The function on the driver that writes each batch, and the faults that act there."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from homeostat.lab.corpus.row_work import pause
from homeostat.lab.corpus.switches import Switches, strength_of

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def sink_function(switches: Switches, directory: Path) -> Callable[[DataFrame, int], None]:
    """A function for `foreachBatch`. The strengths of its switches: `sink-bound` is how many seconds it waits, as for a
    system that accepts the batch slowly; `large-plan` is the number of columns of a plan that it builds; `large-result`
    is the number of rows that it collects."""
    slow, plan, result = (switches.path(name) for name in ("sink-bound", "large-plan", "large-result"))

    def write(frame: DataFrame, batch: int) -> None:
        if columns := round(strength_of(plan)):
            frame = _widened(frame, columns)
        if rows := round(strength_of(result)):
            frame.sparkSession.range(rows).selectExpr("id", "repeat(cast(id AS string), 10) AS text").collect()
        frame.write.mode("overwrite").parquet(str(directory / f"batch-{batch % 3}"))
        pause(slow)

    return write


def _widened(frame: DataFrame, columns: int) -> DataFrame:
    """Add the columns one by one, as code with a loop does: each call analyses the whole plan again."""
    from pyspark.sql import functions as f

    for number in range(columns):
        frame = frame.withColumn(f"column_{number}", f.length("word") + number)
    return frame.select("row", "word")
