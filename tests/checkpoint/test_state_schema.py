"""What an operator is, found out from the schema of its state."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.checkpoint.state_schema import StoreSchema, operator_name, read_schema

KEY = '{"type":"struct","fields":[{"name":"word","type":"string","nullable":true,"metadata":{}}]}'
VALUE = '{"type":"struct","fields":[{"name":"count","type":"long","nullable":false,"metadata":{}}]}'


def text(of: str) -> bytes:
    return len(of).to_bytes(2) + of.encode()


def chunked(of: str, size: int) -> bytes:
    parts = [of[start : start + size] for start in range(0, len(of), size)]
    return len(parts).to_bytes(4) + b"".join(map(text, parts))


@pytest.mark.parametrize("size", [7, 65_535])
def test_both_forms_of_the_file_are_read(size: int) -> None:
    """Spark 3.0 wrote the first form, and later versions write the second."""
    expected = StoreSchema(("word",), ("count",))
    assert read_schema(text("v1") + text(KEY) + text(VALUE)) == expected
    assert read_schema(text("v2") + chunked(KEY, size) + chunked(VALUE, size)) == expected


@given(st.binary(max_size=200))
def test_a_damaged_file_says_nothing(data: bytes) -> None:
    assert read_schema(data) is None


@pytest.mark.parametrize("cut", [0, 1, 3, 9, 60, 120])
def test_half_a_file_says_nothing(cut: int) -> None:
    assert read_schema((text("v2") + chunked(KEY, 7) + chunked(VALUE, 7))[:cut]) is None


@pytest.mark.parametrize(
    ("key", "value", "name"),
    [
        (("word",), ("count",), "stateStoreSave"),
        (("word",), ("__dummy__",), "dedupe"),
        (("a", "b"), ("a", "b", "c"), "dedupe"),
        (("word",), ("expiresAtMicros",), "dedupeWithinWatermark"),
        (("word",), ("groupState", "timeoutTimestamp"), "flatMapGroupsWithState"),
        (("user", "sessionStartTime"), ("session_window", "user", "count"), "sessionWindowStateStoreSaveExec"),
        (("key",), ("value",), "globalLimit"),
        ((), ("count",), "stateStoreSave"),
    ],
)
def test_operators_are_are_distinguishable(key: tuple[str, ...], value: tuple[str, ...], name: str) -> None:
    assert operator_name(["default"], StoreSchema(key, value)) == name


def test_a_join_is_known_by_its_stores() -> None:
    assert operator_name(["left-keyToNumValues", "right-keyWithIndexToValue"], None) == "symmetricHashJoin"
