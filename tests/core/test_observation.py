"""Shares of keys in the rows of a batch, and answers that an observation remembers."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import count

import pytest

from homeostat.core.observation import KeyLoad, Observation


def test_the_share_is_that_of_the_largest_key() -> None:
    assert KeyLoad(200.0, 50.0).share == 0.25
    assert math.isnan(KeyLoad(0.0, 0.0).share)


@pytest.mark.parametrize(("next_rows", "share"), [((), 0.5), ((20.0,), 0.7), ((10.0,), 0.5), ((20.0, 13.0, 5.0), 0.83)])
def test_a_key_is_hot_if_it_fills_more_than_half_of_an_even_partition(
    next_rows: tuple[float, ...], share: float
) -> None:
    """With four partitions an even one has 25 of 100 rows."""
    assert KeyLoad(100.0, 50.0, next_rows=next_rows).hot_share(4) == pytest.approx(share)


def test_an_answer_is_computed_once_and_not_handed_on_to_a_changed_observation() -> None:
    observation, numbers = Observation(10.0, 10.0, 1), count()
    assert [observation.once("number", lambda: next(numbers)) for _ in range(2)] == [0, 0]
    changed = replace(observation, batch=2)
    assert changed.once("number", lambda: next(numbers)) == 1
