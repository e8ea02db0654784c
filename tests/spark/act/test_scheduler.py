"""What the scheduler of a real driver says about its executors."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from homeostat.spark.act.scheduler import ExecutorInfo, Scheduler

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


def test_executors_are_ordered_by_number_and_not_by_text() -> None:
    ids = ["10", "9", "driver"]
    executors = sorted((ExecutorInfo(id, "host", 1, 0.0) for id in ids), key=lambda executor: executor.number)
    assert [executor.id for executor in executors] == ["driver", "9", "10"]


@pytest.mark.usefixtures("two_executors")
def test_active_executors_are_registered_and_present(spark: SparkSession) -> None:
    scheduler = Scheduler(spark)
    active = scheduler.active()
    ids = {executor.id for executor in active}
    assert len(active) >= 2
    assert ids <= scheduler.registered_ids() <= scheduler.present()
    assert all(executor.host.startswith("127.0.0.") and executor.cores == 1 for executor in active)
    assert [executor.number for executor in active] == sorted(executor.number for executor in active)
