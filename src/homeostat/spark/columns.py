"""Values on their way into the columns of a state and back. What does not fit a column Spark keeps as NULL and says
nothing: here it is made to fit where nothing is lost, and refused elsewhere."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import UTC
from decimal import Decimal
from typing import Any

from pyspark.sql.types import (
    ArrayType,
    DataType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StructField,
    StructType,
    TimestampType,
    _make_type_verifier,
)

from homeostat.stateful.types import EPOCH, MICROSECOND


def stored(columns: StructType) -> StructType:
    """As Spark keeps them: of a TIMESTAMP it would give back the local time, which cannot be compared with that of a
    row, and is that of two moments in autumn."""
    return StructType([StructField(each.name, LongType() if _is_moment(each) else each.dataType) for each in columns])


def packed(columns: StructType, values: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple) or len(values) != len(columns):
        raise TypeError(f"{values!r} is not one value for each of {', '.join(columns.names)}")
    return tuple(map(_pack, columns, values))


def unpacked(columns: StructType, kept: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(map(_unpack, columns, kept))


def _pack(column: StructField, value: Any) -> Any:
    fit = _fitting(column.dataType, value)
    try:
        _make_type_verifier(column.dataType)(fit)
    except (TypeError, ValueError):
        told = f"{column.name} {column.dataType.simpleString().upper()}"
        raise TypeError(f"{told} cannot keep {value!r}") from None
    return (fit.astimezone(UTC) - EPOCH) // MICROSECOND if fit is not None and _is_moment(column) else fit


def _unpack(column: StructField, value: Any) -> Any:
    if value is not None and _is_moment(column):
        return EPOCH + value * MICROSECOND
    return bytes(value) if isinstance(value, bytearray) else value


def _fitting(kind: DataType, value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(kind, ArrayType) and isinstance(value, list | tuple):
        return [_fitting(kind.elementType, each) for each in value]
    if isinstance(kind, MapType) and isinstance(value, Mapping):
        return {_fitting(kind.keyType, key): _fitting(kind.valueType, each) for key, each in value.items()}
    if type(value) is int and isinstance(kind, FloatType | DoubleType):
        return float(value)
    if type(value) is int and isinstance(kind, DecimalType):
        return Decimal(value)
    return value


def _is_moment(column: StructField) -> bool:
    return isinstance(column.dataType, TimestampType)
