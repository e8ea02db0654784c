"""`hs.State`: defining a state needs no Spark; running it gives a stream with the declared columns."""

from __future__ import annotations

import subprocess
import sys
from typing import TYPE_CHECKING

from support.keyed_states import Sessions

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

WITHOUT_SPARK = """
import sys
import homeostat as hs

class Clicks(hs.State):
    emits = "user STRING, clicks BIGINT"
    clicks = hs.Count()

assert "pyspark" not in sys.modules
"""


def test_a_state_can_be_defined_without_importing_spark() -> None:
    subprocess.run([sys.executable, "-c", WITHOUT_SPARK], check=True)


def test_a_state_over_grouped_rows_is_a_stream_of_the_declared_columns(spark: SparkSession) -> None:
    rate = spark.readStream.format("rate").load()
    clicks = rate.selectExpr("string(value) AS user", "timestamp AS at").withWatermark("at", "5 seconds")
    emitted = Sessions().over(clicks.groupBy("user"))
    assert emitted.isStreaming
    assert emitted.dtypes == [("user", "string"), ("clicks", "bigint"), ("what", "string")]
