"""What a source says: sums over its partitions, and what is unknown."""

from __future__ import annotations

import math

from homeostat.core.source_sample import SourcePartition, SourceSample


def sample(*partitions: SourcePartition, rows_per_offset: float = 1.0) -> SourceSample:
    return SourceSample("orders", "orders", 0.0, partitions, rows_per_offset)


def test_rows_that_were_deleted_do_not_wait() -> None:
    partition = SourcePartition("orders-0", first=50.0, read=20.0, end=100.0)
    assert partition.pending == 50.0
    assert partition.expired == 30.0
    assert sample(partition).expired_rows == 30.0


def test_offsets_that_are_no_rows_are_not_counted() -> None:
    halves = sample(SourcePartition("t-0", read=0.0, end=100.0, arrival_per_s=10.0), rows_per_offset=0.5)
    assert (halves.pending_rows, halves.arrival_per_s) == (50.0, 5.0)


def test_before_the_first_batch_nothing_is_known() -> None:
    assert math.isnan(sample(SourcePartition("t-0", first=0.0, end=7.0)).pending_rows)
    assert math.isnan(sample().pending_rows)


def test_the_lag_is_that_of_the_partition_that_is_furthest_behind() -> None:
    near, far = SourcePartition("t-0", lag_s=1.0), SourcePartition("t-1", lag_s=9.0, has_leader=False)
    assert sample(near, far).lag_s == 9.0
    assert math.isnan(sample(near, SourcePartition("t-1")).lag_s)
    assert sample(near, far).leaderless == ("t-1",)
