"""Shares of keys in the rows of a batch."""

from __future__ import annotations

import math

import pytest

from homeostat.core.observation import KeyLoad


def test_the_share_is_that_of_the_largest_key() -> None:
    assert KeyLoad(200.0, 50.0).share == 0.25
    assert math.isnan(KeyLoad(0.0, 0.0).share)


@pytest.mark.parametrize(("next_rows", "share"), [((), 0.5), ((20.0,), 0.7), ((10.0,), 0.5), ((20.0, 13.0, 5.0), 0.83)])
def test_a_key_is_hot_if_it_fills_more_than_half_of_an_even_partition(
    next_rows: tuple[float, ...], share: float
) -> None:
    """With four partitions an even one has 25 of 100 rows."""
    assert KeyLoad(100.0, 50.0, next_rows=next_rows).hot_share(4) == pytest.approx(share)
