"""A state keeps of a value what was given, or it is refused: Spark itself would keep nothing and say nothing."""

from __future__ import annotations

from datetime import UTC, date, datetime, timedelta, timezone
from decimal import Decimal
from typing import Any

import numpy as np
import pytest

pytest.importorskip("pyspark", reason="the columns are Spark's")

from pyspark.sql.types import (
    ArrayType,
    BinaryType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    IntegerType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
)

from homeostat.keyed_state.state_columns import pack, round_trip, stored_types, unpack

POINT = StructType([StructField("x", LongType()), StructField("at", TimestampType())])


def column(kind: DataType) -> StructType:
    return StructType([StructField("kept", kind)])


@pytest.mark.parametrize(
    ("kind", "original", "kept"),
    [
        (LongType(), 3, 3),
        (LongType(), np.int64(3), 3),
        (DoubleType(), 3, 3.0),
        (DoubleType(), None, None),
        (DecimalType(9, 2), 3, Decimal(3)),
        (ArrayType(DoubleType()), (1, 2.5), [1.0, 2.5]),
        (ArrayType(LongType()), np.array([1, 2]), [1, 2]),
        (MapType(StringType(), DoubleType()), {"a": 1}, {"a": 1.0}),
        (BinaryType(), b"a", b"a"),
        (DateType(), date(2026, 1, 1), date(2026, 1, 1)),
    ],
)
def test_what_fits_is_kept(kind: DataType, original: Any, kept: Any) -> None:
    (value,) = pack(column(kind), (original,))
    assert (type(value), value) == (type(kept), kept)
    assert unpack(column(kind), (value,)) == (kept,)


@pytest.mark.parametrize(
    ("kind", "original", "message"),
    [
        (LongType(), 0.5, "the column kept BIGINT cannot store 0.5"),
        (LongType(), "3", "the column kept BIGINT cannot store '3'"),
        (IntegerType(), 2**31, "the column kept INT cannot store 2147483648"),
        (DoubleType(), True, "the column kept DOUBLE cannot store True"),
        (ArrayType(LongType()), {1}, "the column kept ARRAY<BIGINT> cannot store {1}"),
        (TimestampType(), 7, "the column kept TIMESTAMP cannot store 7"),
        (StringType(), 7, "the column kept STRING cannot store 7"),
        (ArrayType(StringType()), ["a", 7], "the column kept ARRAY<STRING> cannot store ['a', 7]"),
        (MapType(StringType(), LongType()), {None: 7}, "the column kept MAP<STRING,BIGINT> cannot store {None: 7}"),
        (DateType(), datetime(2026, 1, 1, 5), "the column kept DATE cannot store datetime.datetime(2026, 1, 1, 5, 0)"),
        (POINT, (1,), "the column kept STRUCT<X:BIGINT,AT:TIMESTAMP> cannot store (1,)"),
        (
            POINT,
            {"x": 1, "When": None},
            "the column kept STRUCT<X:BIGINT,AT:TIMESTAMP> cannot store {'x': 1, 'When': None}",
        ),
    ],
)
def test_what_does_not_fit_is_refused(kind: DataType, original: Any, message: str) -> None:
    with pytest.raises(TypeError) as refused:
        pack(column(kind), (original,))
    assert str(refused.value) == message


def test_a_moment_is_kept_whatever_its_clock_shows() -> None:
    moments = column(TimestampType())
    east = datetime(2026, 10, 25, 2, 30, 0, 1, timezone(timedelta(hours=2)))
    assert stored_types(moments) == column(LongType())
    assert unpack(moments, pack(moments, (east,))) == (east.astimezone(UTC),)
    assert unpack(moments, pack(moments, (None,))) == (None,)


def test_what_lies_in_others_comes_back_as_it_would_by_itself() -> None:
    east = datetime(2026, 10, 25, 2, 30, 0, 1, timezone(timedelta(hours=2)))
    same = east.astimezone(UTC)
    moments = column(ArrayType(TimestampType()))
    assert stored_types(moments) == column(ArrayType(LongType()))
    assert round_trip(moments, ([east, None],)) == ([same, None],)
    named = column(MapType(StringType(), ArrayType(POINT)))
    assert stored_types(named) == column(
        MapType(StringType(), ArrayType(StructType([StructField("x", LongType()), StructField("at", LongType())])))
    )
    (result,) = round_trip(named, ({"a": ({"at": east, "x": 1}, (2, None), None)},))
    assert result == {"a": [(1, same), (2, None), None]}
    assert [point.x for point in result["a"][:2]] == [1, 2]
    binary = column(ArrayType(BinaryType()))
    assert [type(each) for each in unpack(binary, ([bytearray(b"a")],))[0]] == [bytes]


def test_there_must_be_a_value_for_each_column() -> None:
    two = StructType([StructField("n", LongType()), StructField("total", LongType())])
    for wrong in (3, (1, 2, 3), None):
        with pytest.raises(TypeError, match="expected one value for each of n, total, not"):
            pack(two, wrong)  # type: ignore[arg-type]
