"""The cluster of a measurement: executors come and go as asked, and the machine is described."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.lab.bench.ground import Ground, machine

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.mark.usefixtures("two_executors")
def test_the_number_of_executors_is_exact_in_both_directions(
    spark: SparkSession, live_executors: Callable[[], list[str]], tmp_path: Path
) -> None:
    ground = Ground(spark, tmp_path)
    for count in (3, 1):
        ground.set_executors(count)
        assert len(live_executors()) == count


def test_a_reader_learns_the_cores_and_the_load_of_the_machine() -> None:
    facts = machine()
    assert facts["cores"] >= 1
    assert len(facts["load_average"]) == 3
