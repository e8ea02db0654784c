"""Keys of several columns, of days and moments, and rows without one: on Spark the same whatever the spread."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import pytest

import homeostat as hs

if TYPE_CHECKING:
    from pyspark.sql import DataFrame

SCHEMA = "user STRING, day DATE, at TIMESTAMP, amount BIGINT"
ANN = {"user": "ann", "day": "2026-01-01", "at": "2026-01-01T00:00:05Z"}
NOBODY = {"at": "2026-01-01T00:00:05Z"}
NEVER = {"user": "ann", "day": "2026-01-01"}
BATCHES = (
    [ANN | {"amount": 1}, NOBODY | {"amount": 2}, ANN | {"amount": 3}, NEVER | {"amount": 4}],
    [NOBODY | {"amount": 5}, {"amount": 6}, ANN | {"amount": 7}, NOBODY | {"amount": 8}],
)


@pytest.mark.parametrize("spread", [1, 3])
def test_a_key_may_be_several_columns_and_any_of_them_may_be_null(on_spark: Callable[..., Any], spread: int) -> None:
    def summed(rows: DataFrame) -> DataFrame:
        sums = hs.keyed(
            rows,
            key=("user", "day", "at"),
            zero=0,
            add=lambda total, row: total + row.amount,
            merge=operator.add,
            state="total BIGINT",
            samples=[{"amount": 1}, {"amount": 5}],
            spread=spread,
            output_mode="append",
        )
        return sums.selectExpr("user", "CAST(day AS STRING)", "unix_seconds(at)", "total")

    at_s = 1_767_225_605
    first, second = on_spark(summed, SCHEMA, BATCHES)
    assert set(first) == {("ann", "2026-01-01", at_s, 4), (None, None, at_s, 2), ("ann", "2026-01-01", None, 4)}
    assert set(second) == {("ann", "2026-01-01", at_s, 11), (None, None, at_s, 15), (None, None, None, 6)}
    assert (len(first), len(second)) == (3, 3)
