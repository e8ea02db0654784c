"""Converts Python types to Spark columns, and values to and from the state."""

from __future__ import annotations

import re
from collections.abc import Mapping
from datetime import UTC, date, datetime, timedelta
from types import UnionType
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from homeostat.core.errors import ConfigError

T = TypeVar("T")
EPOCH, MICROSECOND = datetime.fromtimestamp(0, UTC), timedelta(microseconds=1)

COLUMNS: Mapping[type, str] = {
    bool: "BOOLEAN",
    int: "BIGINT",
    float: "DOUBLE",
    str: "STRING",
    bytes: "BINARY",
    date: "DATE",
    datetime: "BIGINT",  # microseconds: Spark returns a TIMESTAMP as local time, which is ambiguous when clocks go back
}
LONG = range(-(2**63), 2**63)  # Spark stores NULL for a larger int
# The pieces of a list of columns: a comma within quotes or brackets does not end a column.
_PIECE = re.compile(r"""`(?:[^`]|``)*`|'(?:\\.|[^'\\])*'|"(?:\\.|[^"\\])*"|.""", re.DOTALL)
_NAMED = re.compile(r"\s*(?:`((?:[^`]|``)+)`|(\w+)\b)\s*:?\s*\w")


class Codec(Generic[T]):
    """Converts values of one type: a plain value has the column `value`, a NamedTuple one column per field."""

    def __init__(self, kind: type[T]) -> None:
        self._kind = kind
        self._is_named_tuple = _is_named_tuple(kind)
        self._columns = _fields(kind) if self._is_named_tuple else {"value": kind}
        self.ddl = ddl(self._columns)

    def pack(self, value: T) -> tuple[Any, ...]:
        values: Any = value if self._is_named_tuple else (value,)
        return tuple(map(_fitting, self._columns.values(), values))

    def unpack(self, columns: tuple[Any, ...]) -> T:
        values = map(_revive, self._columns.values(), columns)
        make: Any = self._kind
        value: T = make(*values) if self._is_named_tuple else next(values)
        return value


def ddl(columns: Mapping[str, type]) -> str:
    """
    >>> ddl({"user": str, "clicks": int})
    '`user` STRING, `clicks` BIGINT'
    """
    return ", ".join(f"`{name}` {_column(kind)}" for name, kind in columns.items())


def column_names(ddl: str) -> tuple[str, ...]:
    """
    >>> column_names("user STRING, `to pay`: MAP<STRING, DECIMAL(9, 2)>, n:BIGINT")
    ('user', 'to pay', 'n')
    """
    columns, depth = [""], 0
    for piece in _PIECE.findall(ddl):
        depth += (piece in "<(") - (piece in ">)")
        if piece == "," and not depth:
            columns.append("")
        else:
            columns[-1] += piece
    return tuple(map(_name, columns))


def _name(column: str) -> str:
    match = _NAMED.match(column)
    if match is None:
        raise ConfigError(
            f"{column.strip()!r} is not a column", where="emits", fix='write a name and a type, such as "user STRING"'
        )
    quoted_name, plain_name = match.groups()
    return plain_name or quoted_name.replace("``", "`")


def _column(kind: type) -> str:
    if kind not in COLUMNS:
        types = ", ".join(each.__name__ for each in COLUMNS)
        raise ConfigError(
            f"a state variable cannot have the type {kind!r}", fix=f"use {types} or a NamedTuple of these"
        )
    return COLUMNS[kind]


def _is_named_tuple(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, tuple) and hasattr(kind, "_fields")


def _fields(kind: type) -> dict[str, type]:
    hints = get_type_hints(kind)  # a collections.namedtuple has none
    return {name: _present(hints.get(name, kind)) for name in getattr(kind, "_fields")}  # noqa: B009 - a NamedTuple by then


def _present(hint: Any) -> Any:
    """Return `int` for `int | None`: every column may be null."""
    if get_origin(hint) in (Union, UnionType):
        members = [member for member in get_args(hint) if member is not type(None)]
        return members[0] if len(members) == 1 else hint
    return hint


def _fitting(kind: type, value: Any) -> Any:
    """Return the value as Spark stores it. Refuse what Spark would refuse, so that a rehearsal finds it too."""
    if hasattr(value, "item"):  # a NumPy number
        value = value.item()
    if kind is datetime and isinstance(value, datetime):
        return (value.astimezone(UTC) - EPOCH) // MICROSECOND
    if value is None or (type(value) is kind and (kind is not int or value in LONG)):
        return value
    if kind is float and type(value) is int:
        return float(value)
    raise TypeError(f"a state variable of type {kind.__name__} cannot store {value!r}")


def _revive(kind: type, value: Any) -> Any:
    if kind is datetime and value is not None:
        return EPOCH + value * MICROSECOND
    return bytes(value) if isinstance(value, bytearray) else value
