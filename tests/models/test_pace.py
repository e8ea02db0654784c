"""Whether the worker or the partition is slow."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.observation import Observation
from homeostat.models.pace import paces
from support.timed_batches import batch, stage


def batches(worker_factor: dict[int, float], partition_factor: dict[int, float], *, moves: bool) -> list[Observation]:
    """Eight partitions on four workers; with `moves`, a partition meets another worker in each batch."""
    result = []
    for number in range(1, 7):
        workers = np.array([(partition + (number if moves else 0)) % 4 for partition in range(8)])
        run_s = [
            worker_factor.get(int(worker), 1.0) * partition_factor.get(partition, 1.0)
            for partition, worker in enumerate(workers)
        ]
        sample = replace(stage(run_s, slots=4, began_s=0.0), worker=workers)
        result.append(batch({"read": sample}, number=number, seconds=9.0, phases_s={"addBatch": 9.0}, slots=4))
    return result


@pytest.mark.parametrize("moves", [True, False])
def test_a_slow_worker_is_slow_with_all_of_its_partitions(moves: bool) -> None:
    pace = paces(batches({1: 3.0}, {}, moves=moves))
    assert pace.workers["1"] == pytest.approx(3.0)
    assert np.nanmax(pace.partitions["read"]) < 1.5


@pytest.mark.parametrize("moves", [True, False])
def test_a_costly_partition_is_costly_on_every_worker(moves: bool) -> None:
    pace = paces(batches({}, {5: 4.0}, moves=moves))
    assert max(pace.workers.values()) < 1.25
    assert pace.partitions["read"][5] == pytest.approx(4.0)


def test_with_one_partition_on_each_worker_the_two_cannot_be_are_distinguishable() -> None:
    sample = stage([1.0, 1.0, 4.0, 1.0], slots=4, began_s=0.0)
    fixed = [batch({"read": sample}, number=n, seconds=4.0, phases_s={"addBatch": 4.0}, slots=4) for n in range(1, 7)]
    assert not paces(fixed).distinguishable["read"]
    assert paces(batches({1: 3.0}, {}, moves=False)).distinguishable["read"]


def test_too_few_batches_tell_nothing() -> None:
    assert paces(batches({1: 3.0}, {}, moves=True)[:2]).workers == {}
