"""What cannot run is refused in one line, as early as it can be known."""

from __future__ import annotations

from collections import namedtuple
from collections.abc import Iterator
from datetime import datetime
from decimal import Decimal
from typing import Any

import pytest

import homeostat as hs
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.keyed.column_types import column_names
from homeostat.testing import Rehearsal


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ({"n": hs.Count(ttl="1 h"), "time": "event"}, "Broken.n: Spark has a time to live by the clock only"),
        ({"time": "lunch"}, "Broken.time: 'lunch' is no time"),
        ({"wake": hs.Count()}, "Broken.wake: a variable cannot have this name"),
        ({"on_rows": lambda self, key, rows: None}, "Broken: no columns come out"),
        ({"emits": "user, n BIGINT"}, "emits: 'user' is no column (a name and a type, as \"user STRING\")"),
        ({"emits": "STRUCT<user: STRING>"}, "emits: 'STRUCT<user: STRING>' is no column"),
        ({"emits": "user STRING,"}, "emits: '' is no column"),
    ],
)
def test_a_class_that_cannot_run_is_refused_when_it_is_defined(body: dict[str, Any], complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        type("Broken", (hs.State,), body)
    assert complaint in refused.value.line


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
    ("ttl", "complaint"),
    [("soon", "ttl: must be a duration"), ("3", "ttl: needs a unit"), ("0 s", "ttl: must be at least 1 ms, not '0 s'")],
)
def test_a_time_to_live_is_a_duration(ttl: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        hs.Count(ttl=ttl)
    assert complaint in refused.value.line


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
    assert refused.value.line.startswith(f"cannot keep {kind} in state (use bool, int, ")


class Careless(hs.State):
    """Does what its only row says."""

    emits = "n BIGINT"
    n = hs.Count()
    at = hs.Value(datetime)
    hashes = hs.Counts(int)

    def on_rows(self, key: str, rows: Iterator[Any]) -> Iterator[tuple[Any, ...]]:
        for row in rows:
            yield from row.does(self)


class Timed(hs.State):
    emits = "n BIGINT"
    time = "event"


def wrongly(does: Any) -> None:
    Rehearsal(Careless(), key="key").feed({"key": "a", "does": does})


def test_the_largest_and_the_smallest_number_of_64_bits_are_kept() -> None:
    rehearsal = Rehearsal(Careless(), key="key")
    for number in (2**63 - 1, -(2**63)):
        rehearsal.feed({"key": "a", "does": lambda state, n=number: state.hashes.update({n: n}) or ()})
    assert dict(rehearsal["a"].hashes) == {2**63 - 1: 2**63 - 1, -(2**63): -(2**63)}


def test_mistakes_are_told_as_they_are_made() -> None:
    with pytest.raises(TypeError, match="state of int cannot keep 'many'"):
        wrongly(lambda state: setattr(state, "n", "many"))
    with pytest.raises(TypeError, match="state of int cannot keep 9223372036854775808"):
        wrongly(lambda state: setattr(state, "n", 2**63))
    with pytest.raises(TypeError, match="state of int cannot keep -9223372036854775809"):
        wrongly(lambda state: state.hashes.update({-(2**63) - 1: 1}))
    with pytest.raises(HomeostatError, match="Careless sets a timer and has no on_timer"):
        wrongly(lambda state: state.wake("1 s"))
    with pytest.raises(HomeostatError, match="Careless asks for the time and is told none"):
        wrongly(lambda state: [state.now_ms])
    with pytest.raises(HomeostatError, match=r"Careless yields \(1, 2\) \(a tuple of n, as `emits` says\)"):
        wrongly(lambda state: [(1, 2)])
    with pytest.raises(HomeostatError, match=r"Careless.m is not declared \(m = hs.Value"):
        wrongly(lambda state: setattr(state, "m", 1))
    with pytest.raises(HomeostatError, match="Careless has no state here"):
        Careless().n += 1
    with pytest.raises(ConfigError, match="name the column that has it"):
        Rehearsal(Timed(), key="user")
