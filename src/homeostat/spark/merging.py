"""Functions that build a result row by row or in parts: does it matter in which parts? Searched for by trying. Pure."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from homeostat.core.errors import ConfigError

_TRIES = 60
_MOST_ROWS = 4
_CLOSE = 1e-9
_FIX = "the order and the parts in which rows come must not matter"


@dataclass(frozen=True, slots=True)
class Merging:
    """`zero` makes what is there before any row, `add` adds a row to it, `merge` makes one of two, `finish` the result
    of it. A `zero` that is no function is copied each time."""

    zero: Any
    add: Callable[[Any, Any], Any]
    merge: Callable[[Any, Any], Any]
    finish: Callable[[Any], Any] | None = None

    def start(self) -> Any:
        return self.zero() if callable(self.zero) else copy.deepcopy(self.zero)

    def over(self, rows: Sequence[Any]) -> Any:
        result = self.start()
        for row in rows:
            result = self.add(result, row)
        return result

    def result(self, part: Any) -> Any:
        return part if self.finish is None else self.finish(part)


class _Law(NamedTuple):
    """Two ways to the same end, as functions of three parts and a row, and how both are written."""

    name: str
    one: Callable[[Merging, Any, Any, Any, Any], Any]
    other: Callable[[Merging, Any, Any, Any, Any], Any]
    text: str


_LAWS = (
    _Law(
        "zero is not neutral",
        lambda m, a, b, c, row: m.merge(m.start(), a),
        lambda m, a, b, c, row: a,
        "merge(zero, {a}) is {x} instead of {y}",
    ),
    _Law(
        "merge is not commutative",
        lambda m, a, b, c, row: m.merge(a, b),
        lambda m, a, b, c, row: m.merge(b, a),
        "merge({a}, {b}) is {x}, the other way round it is {y}",
    ),
    _Law(
        "merge is not associative",
        lambda m, a, b, c, row: m.merge(m.merge(a, b), c),
        lambda m, a, b, c, row: m.merge(a, m.merge(b, c)),
        "merge(merge({a}, {b}), {c}) is {x}, merge({a}, merge({b}, {c})) is {y}",
    ),
    _Law(
        "add and merge do not agree",
        lambda m, a, b, c, row: m.add(a, row),
        lambda m, a, b, c, row: m.merge(a, m.add(m.start(), row)),
        "add({a}, {row}) is {x}, merge({a}, add(zero, {row})) is {y}",
    ),
)


def require_mergeable(merging: Merging, samples: Sequence[Any], where: str, seed: int = 1) -> None:
    """Refuses functions whose result depends on how rows are cut into parts, with the shortest example that was found.

    Numbers need only be close: sums of fractions depend on their order in the last digits.
    """
    chance = random.Random(seed)
    tries: list[tuple[list[Any], Any]] = []
    for number in range(_TRIES):
        most = 1 + number * _MOST_ROWS // _TRIES
        rows = [[chance.choice(samples) for _ in range(chance.randint(1, most))] for _ in range(3)]
        parts = [_tried(partial(merging.over, each), "add", each[0], where) for each in rows]
        tries.append((parts, chance.choice(samples)))
    for law in _LAWS:
        for parts, row in tries:
            _hold(law, merging, parts, row, where)


def _hold(law: _Law, merging: Merging, parts: Sequence[Any], row: Any, where: str) -> None:
    def way(go: Callable[[Merging, Any, Any, Any, Any], Any]) -> Any:
        # They may change what they are given.
        a, b, c = copy.deepcopy(parts)
        return merging.result(go(merging, a, b, c, row))

    told = dict(zip("abc", map(repr, parts), strict=True)) | {"row": repr(row)}
    one = _tried(lambda: way(law.one), "merge", parts[0], where)
    other = _tried(lambda: way(law.other), "merge", parts[0], where)
    if not alike(one, other):
        example = law.text.format(**told, x=repr(one), y=repr(other))
        raise ConfigError(f"{law.name}: {example}", where=where, fix=_FIX)


def _tried(call: Callable[[], Any], name: str, given: Any, where: str) -> Any:
    try:
        return call()
    except Exception as error:
        raise ConfigError(
            f"{name} raises {type(error).__name__}: {error} (tried with {given!r})",
            where=where,
            fix="give rows that it understands: samples=[…]",
        ) from error


def alike(one: Any, other: Any) -> bool:
    if isinstance(one, float) or isinstance(other, float):
        return _close(one, other)
    if isinstance(one, Mapping) and isinstance(other, Mapping):
        return one.keys() == other.keys() and all(alike(value, other[key]) for key, value in one.items())
    if isinstance(one, list | tuple) and isinstance(other, list | tuple):
        return len(one) == len(other) and all(map(alike, one, other))
    return bool(one == other)


def _close(one: Any, other: Any) -> bool:
    numbers = isinstance(one, int | float) and isinstance(other, int | float)
    both_unknown = numbers and math.isnan(one) and math.isnan(other)
    return numbers and (both_unknown or math.isclose(one, other, rel_tol=_CLOSE, abs_tol=_CLOSE))


def examples(kind: str, chance: random.Random) -> Iterator[Any]:
    """Values of one of Spark's simple types, without an end; none for another type."""
    few = _FEW.get(kind)
    while few is not None:
        yield few(chance)


def _few_values() -> dict[str, Callable[[random.Random], Any]]:
    import datetime as dt
    from decimal import Decimal

    day = dt.date(2026, 1, 1)
    moment = dt.datetime(2026, 1, 1)
    whole = {
        kind: (lambda chance: chance.choice((0, 1, 2, 3, 5, 7, 11, -4, 100)))
        for kind in ("byte", "short", "integer", "long")
    }
    return whole | {
        "float": lambda chance: chance.choice((0.0, 1.0, 2.0, 5.0, -3.0, 0.5, 12.25)),
        "double": lambda chance: chance.choice((0.0, 1.0, 2.0, 5.0, -3.0, 0.5, 12.25)),
        "decimal": lambda chance: Decimal(chance.choice((0, 1, 3, 10, -2))),
        "boolean": lambda chance: chance.random() < 0.5,
        "string": lambda chance: chance.choice(("a", "b", "c", "some words", "")),
        "binary": lambda chance: bytes([chance.randint(0, 3)]),
        "date": lambda chance: day + dt.timedelta(days=chance.randint(0, 30)),
        "timestamp": lambda chance: moment + dt.timedelta(seconds=chance.randint(0, 1000)),
        "timestamp_ntz": lambda chance: moment + dt.timedelta(seconds=chance.randint(0, 1000)),
    }


_FEW = _few_values()
