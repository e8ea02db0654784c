"""What batches say about a limit or an interval that was changed while they ran."""

from __future__ import annotations

from math import inf

import pytest

from homeostat.spark.act.live_effects import SeenBatch, Sign, rows_sign, trigger_sign, verdict


def batch(rows: float = 0.0, began_s: float = 0.0, took_s: float = 0.2, *, more: bool = False) -> SeenBatch:
    return SeenBatch(7, began_s, took_s, rows, more)


@pytest.mark.parametrize(
    ("rows", "more", "old", "new", "sign"),
    [
        (100, True, 1000, 100, Sign.NEW),
        (30, False, 1000, 100, Sign.NEW),
        (108, True, 1000, 100, Sign.NEW),  # Kafka gives each topic partition at least one row
        (1000, True, 1000, 100, Sign.OLD),
        (5000, True, inf, 100, Sign.OLD),
        (500, True, 100, 1000, Sign.NEW),
        (100, True, 100, 1000, Sign.OLD),
        (100, False, 100, 1000, Sign.NONE),  # no more rows were there
    ],
)
def test_a_limit_holds_if_the_batch_is_nearer_to_it(
    rows: float, more: bool, old: float, new: float, sign: Sign
) -> None:
    assert rows_sign(batch(rows, more=more), old, new) is sign


@pytest.mark.parametrize(
    ("took_s", "next_s", "old_s", "new_s", "sign"),
    [
        (0.2, 33.0, 1.0, 3.0, Sign.NEW),
        (0.2, 32.0, 1.0, 3.0, Sign.OLD),
        (0.2, 32.0, 3.0, 1.0, Sign.NEW),
        (0.2, 33.0, 3.0, 1.0, Sign.OLD),
        (0.2, 31.3, 1.0, 0.0, Sign.NEW),
        (0.2, 32.0, 0.0, 1.0, Sign.NEW),
        (0.2, 31.3, 0.0, 1.0, Sign.OLD),
        (5.0, 36.1, 1.0, 3.0, Sign.NONE),  # a batch that outlasts both is followed at once
        (0.2, 41.0, 1.0, 3.0, Sign.NONE),  # no rows came for ten seconds
    ],
)
def test_an_interval_holds_if_the_next_batch_begins_when_it_says(
    took_s: float, next_s: float, old_s: float, new_s: float, sign: Sign
) -> None:
    assert trigger_sign(batch(began_s=31.0, took_s=took_s), batch(began_s=next_s), old_s, new_s) is sign


def test_one_batch_may_still_look_as_before() -> None:
    assert verdict([]) is Sign.NONE
    assert verdict([Sign.OLD]) is Sign.NONE
    assert verdict([Sign.OLD, Sign.NEW]) is Sign.NEW
    assert verdict([Sign.OLD, Sign.NONE, Sign.OLD]) is Sign.OLD
    assert verdict([Sign.NONE, Sign.NONE]) is Sign.NONE
