"""Functions that build a result row by row or in parts: does it matter in which parts? Searched for by trying. Pure."""

from __future__ import annotations

import copy
import math
import random
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from itertools import chain, count
from typing import Any, NamedTuple

from homeostat.core.errors import ConfigError

_TRIES = 60
_MOST_ROWS = 12
_CLOSE = 1e-9
_FIX = "the order and the parts in which rows come must not matter"
_UNDERSTOOD = "give rows that it understands: samples=[…]"
_KEPT = "name columns that hold what add and merge return"
_FINISHED = "it must understand whatever add and merge return"
_TOLD = "name columns that hold what finish returns"
_COMPARED = "it must understand every result"
_MEANING = "if these bytes mean the same, say what they mean: compare=…"


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
        "zero is not neutral",
        lambda m, a, b, c, row: m.merge(a, m.start()),
        lambda m, a, b, c, row: a,
        "merge({a}, zero) is {x} instead of {y}",
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


class _NotUnderstoodError(ConfigError):
    """Nothing can be said with these rows."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """Functions that are tried on rows; `kept` is what the state makes of a part, `told` what columns make of a
    result, `compare` what of it must be the same."""

    merging: Merging
    where: str
    kept: Callable[[Any], Any]
    told: Callable[[Any], Any]
    compare: Callable[[Any], Any]

    def parts(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        made = [self._named(_UNDERSTOOD).over(each) for each in rows]
        if any(part is None for part in made) and self.merging.start() is not None:
            raise _NotUnderstoodError("add returns nothing", where=self.where, fix="return what it has made")
        return [self._tried(self.kept, "state", _KEPT)(part) for part in made]

    def hold(self, law: _Law, parts: Sequence[Any], row: Any) -> None:
        def way(go: Callable[[Merging, Any, Any, Any, Any], Any]) -> Any:
            # They may change what they are given.
            a, b, c = copy.deepcopy(parts)
            return self._seen(go(self._named(_FIX), a, b, c, row))

        one, other = way(law.one), way(law.other)
        if not alike(one, other):
            told = dict(zip("abc", map(repr, parts), strict=True)) | {"row": repr(row)}
            example = law.text.format(**told, x=repr(one), y=repr(other))
            fix = _MEANING if isinstance(one, bytes | bytearray) else _FIX
            raise ConfigError(f"{law.name}: {example}", where=self.where, fix=fix)

    def _seen(self, part: Any) -> Any:
        """What comes of it."""
        kept = self._tried(self.kept, "state", _KEPT)(part)
        result = self._tried(self.merging.result, "finish", _FINISHED)(kept)
        return self._tried(self.compare, "compare", _COMPARED)(self._tried(self.told, "result", _TOLD)(result))

    def _named(self, fix: str) -> Merging:
        """The functions, each of which says its name if it fails."""
        add, merge = self._tried(self.merging.add, "add", fix), self._tried(self.merging.merge, "merge", fix)
        return replace(self.merging, add=add, merge=merge)

    def _tried(self, call: Callable[..., Any], name: str, fix: str) -> Callable[..., Any]:
        def tried(*given: Any) -> Any:
            try:
                return call(*given)
            except Exception as error:
                told = f"{name} raises {type(error).__name__}: {error} (tried with {', '.join(map(repr, given))})"
                raise _NotUnderstoodError(told, where=self.where, fix=fix) from error

        return tried


def require_mergeable(
    merging: Merging,
    samples: Sequence[Any],
    where: str,
    *,
    perhaps: Sequence[Any] = (),
    kept: Callable[[Any], Any] = lambda part: part,
    told: Callable[[Any], Any] = lambda result: result,
    compare: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Refuses functions whose result depends on how rows are cut into parts, with the shortest example that was found.

    Every sample is used. Rows in `perhaps` need not be understood, but if they are, the same must hold with them.
    Results are the same if `compare` makes the same of them. Numbers need only be close: sums of fractions depend on
    their order in the last digits.
    """
    trial = _Trial(merging, where, kept, told, compare)
    tries = [(trial.parts(rows), row) for rows, row in _drawn(samples)]
    for law in _LAWS:
        for parts, row in tries:
            trial.hold(law, parts, row)
    for rows, row in _drawn([*samples, *perhaps]) if perhaps else ():
        with suppress(_NotUnderstoodError):
            parts = trial.parts(rows)
            for law in _LAWS:
                trial.hold(law, parts, row)


def _drawn(samples: Sequence[Any]) -> Iterator[tuple[list[list[Any]], Any]]:
    """The rows of three parts and one row more, the fewest first; each sample as often as any other."""
    chance = random.Random(1)
    dealt = chain.from_iterable(chance.sample(samples, len(samples)) for _ in count())
    tries = max(_TRIES, len(samples) // 4)
    for number in range(tries):
        most = 1 + round(_MOST_ROWS * (number / tries) ** 2)
        yield [[next(dealt) for _ in range(chance.randint(1, most))] for _ in range(3)], next(dealt)


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
    small = (0, 1, 2, 3, 5, 7, 11, -4, 100)
    whole = dict.fromkeys(("short", "integer", "long"), _one_of(*small, 1000, -250))
    fractions = dict.fromkeys(("float", "double"), _one_of(0.0, 1.0, 2.0, 5.0, -3.0, 0.5, 12.25, 1000.0, -250.0))
    return {
        **whole,
        **fractions,
        "byte": _one_of(*small),
        "decimal": _one_of(*map(Decimal, (0, 1, 3, 10, -2, 100))),
        "boolean": _one_of(True, False),
        "string": _one_of("a", "b", "c", "some words", ""),
        "binary": _one_of(b"", b"a", b"b"),
        "date": lambda chance: day + dt.timedelta(days=chance.randint(0, 30)),
        "timestamp": lambda chance: moment.replace(tzinfo=dt.UTC) + dt.timedelta(seconds=chance.randint(0, 1000)),
        "timestamp_ntz": lambda chance: moment + dt.timedelta(seconds=chance.randint(0, 1000)),
    }


def _one_of(*values: Any) -> Callable[[random.Random], Any]:
    return lambda chance: chance.choice(values)


_FEW = _few_values()
