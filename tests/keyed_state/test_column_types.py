"""Which types a state variable can have, and the names of the columns that a state emits."""

from __future__ import annotations

from collections import namedtuple
from decimal import Decimal
from typing import Any

import pytest

import homeostat as hs
from homeostat.core.errors import ConfigError
from homeostat.keyed_state.column_types import column_names


@pytest.mark.parametrize(
    ("emits", "names"),
    [
        ("user STRING, n BIGINT", ("user", "n")),
        ("user:STRING,n:BIGINT", ("user", "n")),
        ("user : STRING, n: BIGINT NOT NULL", ("user", "n")),
        ("`my col` STRING, `a, b`BIGINT, `a``b` INT", ("my col", "a, b", "a`b")),
        ("at STRUCT<x: INT, y: ARRAY<MAP<STRING, DECIMAL(9, 2)>>>, n INT", ("at", "n")),
        ("""user STRING COMMENT 'so, it\\'s <', n INT COMMENT "(", m INT""", ("user", "n", "m")),
        ("größe\n  DOUBLE", ("größe",)),
    ],
)
def test_columns_that_come_out_have_the_names_that_spark_gives_them(emits: str, names: tuple[str, ...]) -> None:
    assert column_names(emits) == names


@pytest.mark.parametrize(
    ("declared", "kind"),
    [
        (lambda: hs.Value(list[str]), "list[str]"),
        (lambda: hs.Value(int | None), "int | None"),  # type: ignore[arg-type]
        (lambda: hs.Map(str, list[int]), "list[int]"),
        (lambda: hs.List(namedtuple("Point", "x y")), f"<class '{__name__}.Point'>"),
        (lambda: hs.Counts(Decimal), "<class 'decimal.Decimal'>"),
    ],
)
def test_a_kind_that_cannot_be_kept_is_refused_where_it_is_declared(declared: Any, kind: str) -> None:
    with pytest.raises(ConfigError) as refused:
        declared()
    assert refused.value.line.startswith(f"a state variable cannot have the type {kind} (use bool, int, ")
