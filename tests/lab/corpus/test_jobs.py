"""The jobs have names of their own, and keys that should collide do."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from homeostat.lab.corpus.jobs import JOBS, colliding_keys

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_jobs_are_found_by_their_names() -> None:
    assert all(job.name == name for name, job in JOBS.items())


@pytest.mark.local_spark
def test_colliding_keys_fall_on_one_partition(local_spark: SparkSession) -> None:
    keys = colliding_keys(local_spark, 6)
    assert len(set(keys)) > 100
    rows = local_spark.createDataFrame([(key,) for key in keys], "key string")
    partitions = rows.repartition(6, "key").selectExpr("spark_partition_id() AS part").distinct().collect()
    assert len(partitions) == 1
