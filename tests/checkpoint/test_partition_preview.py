"""Which number of partitions a preview prefers. That it tells the truth is tested with the rescales."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.checkpoint.partition_preview import best, busiest_slot, preview
from homeostat.checkpoint.raw_rows import Keys


def keys(*hashes: int) -> dict[int, Keys]:
    ones = np.ones(len(hashes), dtype=np.int64)
    return {0: Keys(np.array(hashes, dtype=np.int64), ones, 10 * ones)}


def test_negative_hashes_have_a_place_too() -> None:
    (spread,) = preview(keys(-1, -4, 3), 3).operators
    assert spread.rows == (1, 0, 2)
    assert spread.bytes == (10, 0, 20)
    assert spread.balance == pytest.approx(0.5)


def test_the_best_number_balances_and_is_no_larger_than_it_need_be() -> None:
    even_by_four = keys(0, 1, 2, 3, 4, 5, 6, 7)
    assert best(even_by_four, range(3, 9)).partitions == 4
    crowded_by_four = keys(0, 4, 8, 12, 1)
    assert best(crowded_by_four, (4, 5)).partitions == 5


def test_with_slots_waves_are_full() -> None:
    many = keys(*range(120))
    assert best(many, range(2, 9), slots=4).partitions == 4
    assert best(many, range(5, 9), slots=4).partitions == 8


def test_the_busiest_slot_takes_tasks_in_order() -> None:
    assert busiest_slot([5, 1, 1, 1], 2) == 5
    assert busiest_slot([1, 1, 1, 5], 2) == 6
    assert busiest_slot([], 2) == 0
