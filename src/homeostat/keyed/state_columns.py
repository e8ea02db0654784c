"""Values on their way into the columns of a state and back. What does not fit a column Spark keeps as NULL and says
nothing: here it is made to fit where nothing is lost, and refused elsewhere. However deep it lies in others."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, date
from decimal import Decimal
from functools import lru_cache
from typing import Any

from pyspark.sql import Row
from pyspark.sql.types import (
    ArrayType,
    CharType,
    DataType,
    DateType,
    DecimalType,
    DoubleType,
    FloatType,
    LongType,
    MapType,
    StringType,
    StructField,
    StructType,
    TimestampType,
    VarcharType,
    _make_type_verifier,
)

from homeostat.keyed.column_types import EPOCH, MICROSECOND


def stored(columns: StructType) -> StructType:
    """As Spark keeps them: of a TIMESTAMP it would give back the local time, which cannot be compared with that of a
    row, and is that of two moments in autumn."""
    return StructType([StructField(each.name, _stored(each.dataType)) for each in columns])


def packed(columns: StructType, values: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple) or len(values) != len(columns):
        raise TypeError(f"{values!r} is not one value for each of {', '.join(columns.names)}")
    return tuple(map(_in_column, columns, values))


def unpacked(columns: StructType, kept: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_unpacked(each.dataType, value) for each, value in zip(columns, kept, strict=True))


def fitted(columns: StructType, values: Sequence[Any]) -> tuple[Any, ...]:
    """As they would come back."""
    return unpacked(columns, packed(columns, values))


def _stored(kind: DataType) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_stored(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_stored(kind.keyType), _stored(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return stored(kind)
    return LongType() if isinstance(kind, TimestampType) else kind


def _in_column(column: StructField, value: Any) -> Any:
    try:
        return _packed(column.dataType, value)
    except (TypeError, ValueError):
        told = f"{column.name} {column.dataType.simpleString().upper()}"
        raise TypeError(f"{told} cannot keep {value!r}") from None


def _packed(kind: DataType, value: Any) -> Any:
    if hasattr(value, "tolist"):  # of NumPy
        value = value.tolist()
    if isinstance(kind, ArrayType) and isinstance(value, list | tuple):
        return [_packed(kind.elementType, each) for each in value]
    if isinstance(kind, MapType) and isinstance(value, Mapping) and None not in value:
        return {_packed(kind.keyType, key): _packed(kind.valueType, each) for key, each in value.items()}
    if isinstance(kind, StructType) and value is not None:
        return packed(kind, _in_order(kind, value) if isinstance(value, Mapping) else value)
    return _simple(kind, value)


def _in_order(kind: StructType, value: Mapping[str, Any]) -> list[Any]:
    if value.keys() != set(kind.names):
        raise TypeError(f"{value!r} has not the fields {', '.join(kind.names)}")
    return [value[name] for name in kind.names]


def _simple(kind: DataType, value: Any) -> Any:
    if type(value) is int and isinstance(kind, FloatType | DoubleType):
        value = float(value)
    if type(value) is int and isinstance(kind, DecimalType):
        value = Decimal(value)
    _verifier(kind)(value)
    if value is None:
        return None
    if not _whole(kind, value):
        raise TypeError(f"{value!r} is of another type")
    return (value.astimezone(UTC) - EPOCH) // MICROSECOND if isinstance(kind, TimestampType) else value


def _whole(kind: DataType, value: Any) -> bool:
    """Spark's own check lets anything be a text, and the time of day of a date be lost."""
    if isinstance(kind, StringType | CharType | VarcharType):
        return type(value) is str
    return type(value) is date or not isinstance(kind, DateType)


@lru_cache
def _verifier(kind: DataType) -> Callable[[Any], None]:
    return _make_type_verifier(kind)


def _unpacked(kind: DataType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_unpacked(kind.elementType, each) for each in value]
    if isinstance(kind, MapType):
        return {_unpacked(kind.keyType, key): _unpacked(kind.valueType, each) for key, each in value.items()}
    if isinstance(kind, StructType):
        return Row(*kind.names)(*unpacked(kind, value))
    if isinstance(kind, TimestampType):
        return EPOCH + value * MICROSECOND
    return bytes(value) if isinstance(value, bytearray) else value
