"""Tests whether functions that build a result from rows give the same result however the rows are cut into parts."""

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

# Random examples per law: more find rarer mistakes, but the check runs whenever a query is built. A choice.
_TRIES = 60
# The largest number of rows of a part; short examples are tried first, because they are easier to read. A choice.
_MOST_ROWS = 12
# Numbers this close are equal: sums of fractions depend on their order in the last digits.
_CLOSE = 1e-9
_FIX = "make the result independent of the order of the rows and of how they are divided into parts"
_FIX_ROWS = "pass rows that the functions can process: samples=[…]"
_FIX_STATE = "declare state columns that can store what add and merge return"
_FIX_FINISH = "make finish accept whatever add and merge return"
_FIX_RESULT = "declare result columns that can store what finish returns"
_FIX_COMPARE = "make compare accept every result"
_FIX_BYTES = "if these bytes mean the same, pass a function that decodes them: compare=…"


@dataclass(frozen=True, slots=True)
class Merging:
    """`zero` is the part before any row, `add` adds a row to a part, `merge` combines two parts, `finish` turns a part
    into the result. A `zero` that is not a function is copied each time."""

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
    """Two computations that must agree, as functions of three parts and a row, and a text that shows both."""

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
        "merge({a}, {b}) is {x}, but merge({b}, {a}) is {y}",
    ),
    _Law(
        "merge is not associative",
        lambda m, a, b, c, row: m.merge(m.merge(a, b), c),
        lambda m, a, b, c, row: m.merge(a, m.merge(b, c)),
        "merge(merge({a}, {b}), {c}) is {x}, but merge({a}, merge({b}, {c})) is {y}",
    ),
    _Law(
        "add and merge do not agree",
        lambda m, a, b, c, row: m.add(a, row),
        lambda m, a, b, c, row: m.merge(a, m.add(m.start(), row)),
        "add({a}, {row}) is {x}, but merge({a}, add(zero, {row})) is {y}",
    ),
)


class _NotUnderstoodError(ConfigError):
    """The functions cannot process these rows."""


@dataclass(frozen=True, slots=True)
class _Trial:
    """The functions to test. `stored_form` converts a part as the state does, `result_form` a result as its columns do.
    `compare` returns the part of a result that must be equal."""

    merging: Merging
    where: str
    stored_form: Callable[[Any], Any]
    result_form: Callable[[Any], Any]
    compare: Callable[[Any], Any]

    def parts(self, rows: Sequence[Sequence[Any]]) -> list[Any]:
        parts = [self._wrapped_functions(_FIX_ROWS).over(each) for each in rows]
        if any(part is None for part in parts) and self.merging.start() is not None:
            raise _NotUnderstoodError("add returns None", where=self.where, fix="return the new part")
        return [self._wrap(self.stored_form, "state", _FIX_STATE)(part) for part in parts]

    def hold(self, law: _Law, parts: Sequence[Any], row: Any) -> None:
        def way(go: Callable[[Merging, Any, Any, Any, Any], Any]) -> Any:
            # The functions may change their arguments.
            a, b, c = copy.deepcopy(parts)
            return self._comparable(go(self._wrapped_functions(_FIX), a, b, c, row))

        one, other = way(law.one), way(law.other)
        if not alike(one, other):
            names = dict(zip("abc", map(repr, parts), strict=True)) | {"row": repr(row)}
            example = law.text.format(**names, x=repr(one), y=repr(other))
            fix = _FIX_BYTES if isinstance(one, bytes | bytearray) else _FIX
            raise ConfigError(f"{law.name}: {example}", where=self.where, fix=fix)

    def _comparable(self, part: Any) -> Any:
        """The result of a part, as it is compared."""
        stored_part = self._wrap(self.stored_form, "state", _FIX_STATE)(part)
        result = self._wrap(self.merging.result, "finish", _FIX_FINISH)(stored_part)
        return self._wrap(self.compare, "compare", _FIX_COMPARE)(
            self._wrap(self.result_form, "result", _FIX_RESULT)(result)
        )

    def _wrapped_functions(self, fix: str) -> Merging:
        """The functions, wrapped so that an error names the function that failed."""
        add, merge = self._wrap(self.merging.add, "add", fix), self._wrap(self.merging.merge, "merge", fix)
        return replace(self.merging, add=add, merge=merge)

    def _wrap(self, call: Callable[..., Any], name: str, fix: str) -> Callable[..., Any]:
        def guarded_call(*arguments: Any) -> Any:
            try:
                return call(*arguments)
            except Exception as error:
                message = (
                    f"{name} raised {type(error).__name__}: {error} (called with {', '.join(map(repr, arguments))})"
                )
                raise _NotUnderstoodError(message, where=self.where, fix=fix) from error

        return guarded_call


def require_mergeable(
    merging: Merging,
    samples: Sequence[Any],
    where: str,
    *,
    perhaps: Sequence[Any] = (),
    stored_form: Callable[[Any], Any] = lambda part: part,
    result_form: Callable[[Any], Any] = lambda result: result,
    compare: Callable[[Any], Any] = lambda result: result,
) -> None:
    """Raise ConfigError with a short example if the result depends on how rows are cut into parts.

    Every sample is used. The functions may fail on rows in `perhaps`; if they do not, the laws must hold with them too.
    Two results are equal if `compare` returns the same for both. Numbers need only be close.
    """
    trial = _Trial(merging, where, stored_form, result_form, compare)
    tries = [(trial.parts(rows), row) for rows, row in _draw_rows(samples)]
    for law in _LAWS:
        for parts, row in tries:
            trial.hold(law, parts, row)
    for rows, row in _draw_rows([*samples, *perhaps]) if perhaps else ():
        with suppress(_NotUnderstoodError):
            parts = trial.parts(rows)
            for law in _LAWS:
                trial.hold(law, parts, row)


def _draw_rows(samples: Sequence[Any]) -> Iterator[tuple[list[list[Any]], Any]]:
    """Rows of three parts and one more row, short parts first. Every sample is drawn equally often."""
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
    """Yield values of one of Spark's simple types, without end; nothing for other types."""
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
