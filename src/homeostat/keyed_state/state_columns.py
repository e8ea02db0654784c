"""Converts values to and from the columns of a state.

Spark silently stores NULL for a value that does not fit its column. Here a value is converted if nothing is lost, and
refused otherwise, also within arrays, maps and structs.
"""

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

from homeostat.keyed_state.column_types import EPOCH, MICROSECOND


def stored_types(columns: StructType) -> StructType:
    """Return the types that are stored. A TIMESTAMP becomes a number: Spark would return it as local time, which cannot
    be compared with that of a row and is ambiguous when clocks go back."""
    return StructType([StructField(each.name, _stored_type(each.dataType)) for each in columns])


def pack(columns: StructType, values: Sequence[Any]) -> tuple[Any, ...]:
    if not isinstance(values, list | tuple) or len(values) != len(columns):
        raise TypeError(f"expected one value for each of {', '.join(columns.names)}, not {values!r}")
    return tuple(map(_in_column, columns, values))


def unpack(columns: StructType, stored_values: Sequence[Any]) -> tuple[Any, ...]:
    return tuple(_unpack(each.dataType, value) for each, value in zip(columns, stored_values, strict=True))


def round_trip(columns: StructType, values: Sequence[Any]) -> tuple[Any, ...]:
    """Return the values as they are read back."""
    return unpack(columns, pack(columns, values))


def _stored_type(kind: DataType) -> DataType:
    if isinstance(kind, ArrayType):
        return ArrayType(_stored_type(kind.elementType), kind.containsNull)
    if isinstance(kind, MapType):
        return MapType(_stored_type(kind.keyType), _stored_type(kind.valueType), kind.valueContainsNull)
    if isinstance(kind, StructType):
        return stored_types(kind)
    return LongType() if isinstance(kind, TimestampType) else kind


def _in_column(column: StructField, value: Any) -> Any:
    try:
        return _pack(column.dataType, value)
    except (TypeError, ValueError):
        description = f"{column.name} {column.dataType.simpleString().upper()}"
        raise TypeError(f"the column {description} cannot store {value!r}") from None


def _pack(kind: DataType, value: Any) -> Any:
    if hasattr(value, "tolist"):  # a NumPy value
        value = value.tolist()
    if isinstance(kind, ArrayType) and isinstance(value, list | tuple):
        return [_pack(kind.elementType, each) for each in value]
    if isinstance(kind, MapType) and isinstance(value, Mapping) and None not in value:
        return {_pack(kind.keyType, key): _pack(kind.valueType, each) for key, each in value.items()}
    if isinstance(kind, StructType) and value is not None:
        return pack(kind, _in_order(kind, value) if isinstance(value, Mapping) else value)
    return _simple(kind, value)


def _in_order(kind: StructType, value: Mapping[str, Any]) -> list[Any]:
    if value.keys() != set(kind.names):
        raise TypeError(f"expected the fields {', '.join(kind.names)}, not {value!r}")
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
        raise TypeError(f"{value!r} has another type")
    return (value.astimezone(UTC) - EPOCH) // MICROSECOND if isinstance(kind, TimestampType) else value


def _whole(kind: DataType, value: Any) -> bool:
    """Spark's own check accepts any value as a string, and drops the time of day if a date is needed."""
    if isinstance(kind, StringType | CharType | VarcharType):
        return type(value) is str
    return type(value) is date or not isinstance(kind, DateType)


@lru_cache
def _verifier(kind: DataType) -> Callable[[Any], None]:
    return _make_type_verifier(kind)


def _unpack(kind: DataType, value: Any) -> Any:
    if value is None:
        return None
    if isinstance(kind, ArrayType):
        return [_unpack(kind.elementType, each) for each in value]
    if isinstance(kind, MapType):
        return {_unpack(kind.keyType, key): _unpack(kind.valueType, each) for key, each in value.items()}
    if isinstance(kind, StructType):
        return Row(*kind.names)(*unpack(kind, value))
    if isinstance(kind, TimestampType):
        return EPOCH + value * MICROSECOND
    return bytes(value) if isinstance(value, bytearray) else value
