"""When partitions count as uneven."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.models.partition_sizes import ROWS_THAT_TELL, UnevenPartitions, over_the_mean


@pytest.mark.parametrize(
    ("rows", "large"),
    [
        ([10.0, 10.0, 40.0], [False, False, True]),
        ([100.0, 100.0, 100.0], [False, False, False]),
        ([1.0, 1.0, 4.0], [False, False, False]),  # too few rows to tell
        ([float("nan"), 10.0, 400.0], [False, False, False]),
    ],
)
def test_a_partition_is_large_if_it_is_far_over_the_mean(rows: list[float], large: list[bool]) -> None:
    assert over_the_mean(np.array(rows), 1.5).tolist() == large


def test_the_bounds_belong_to_uneven() -> None:
    rows = np.array([0.5, 1.5]) * ROWS_THAT_TELL
    assert UnevenPartitions(1.5).holds(rows)
    assert not UnevenPartitions(1.51).holds(rows)
    assert not UnevenPartitions(1.5).holds(rows * 0.99)
    assert not UnevenPartitions().holds(np.array([]))
