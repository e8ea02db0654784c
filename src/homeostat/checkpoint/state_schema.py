"""Infers the kind of a stateful operator from the schema of its state, because Spark before version 4.0 did not record
it.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

UNKNOWN = "unknown"
JOIN = "symmetricHashJoin"
DEDUPLICATION = "dedupe"
SESSIONS = "sessionWindowStateStoreSaveExec"
_JOIN_STORES = ("left-keyToNumValues", "left-keyWithIndexToValue", "right-keyToNumValues", "right-keyWithIndexToValue")
_READABLE = ("v1", "v2")  # Spark 4 writes v3, and then also the metadata of the operator


@dataclass(frozen=True, slots=True)
class StoreSchema:
    """The names of the fields of a store's keys and values."""

    key: tuple[str, ...]
    value: tuple[str, ...]

    @property
    def claims_whole_rows(self) -> bool:
        """Whether the key is part of the value. Spark before 3.3.1 wrote such a schema for deduplications, in error."""
        return bool(self.key) and set(self.key) <= set(self.value)


def read_schema(data: bytes) -> StoreSchema | None:
    """Return the schema in a schema file; None if its version is not supported or the file is damaged."""
    try:
        version, rest = _text(data)
        if version not in _READABLE:
            return None
        key, rest = _schema(rest, version)
        value, _ = _schema(rest, version)
        return StoreSchema(_names(key), _names(value))
    except (ValueError, KeyError, TypeError, struct.error):
        return None


def operator_name(stores: Iterable[str], schema: StoreSchema | None, *, sums_have_keys: bool = False) -> str:
    """Return the name that Spark 4 gives to the operator with these stores. `sums_have_keys` means that an aggregation
    repeats the key in its values, as it did before Spark 2.4.

    >>> operator_name(["default"], StoreSchema(("word",), ("count",)))
    'stateStoreSave'
    >>> operator_name(["default"], None)
    'unknown'
    """
    if set(stores) & set(_JOIN_STORES):
        return JOIN
    if schema is None:
        return UNKNOWN
    value = set(schema.value)
    if "groupState" in value:
        return "flatMapGroupsWithState"
    if schema.key[-1:] == ("sessionStartTime",) and "session_window" in value:
        return SESSIONS
    if value == {"expiresAtMicros"}:
        return "dedupeWithinWatermark"
    if value == {"__dummy__"} or (schema.claims_whole_rows and not sums_have_keys):
        return DEDUPLICATION
    if schema.key == ("key",) and schema.value == ("value",):
        return "globalLimit"
    return "stateStoreSave"


def _text(data: bytes) -> tuple[str, bytes]:
    """Return a text that Java's writeUTF wrote, and the bytes after it."""
    (length,) = struct.unpack_from(">H", data)
    if len(data) < 2 + length:
        raise ValueError("the text is cut off")
    return data[2 : 2 + length].decode(), data[2 + length :]


def _schema(data: bytes, version: str) -> tuple[str, bytes]:
    if version == "v1":
        return _text(data)
    (chunks,) = struct.unpack_from(">i", data)
    data, parts = data[4:], []
    for _ in range(chunks):
        part, data = _text(data)
        parts.append(part)
    return "".join(parts), data


def _names(schema: str) -> tuple[str, ...]:
    fields: Sequence[dict[str, str]] = json.loads(schema)["fields"]
    return tuple(str(field["name"]) for field in fields)
