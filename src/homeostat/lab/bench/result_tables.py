"""Tables of figures that are taken from kept results, and comparisons with others."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Figures = Mapping[str, Any]
Interval = tuple[float, float]
_NONE = "–"


@dataclass(frozen=True, slots=True)
class Table:
    """The first `keys` columns name the row, the others are figures."""

    columns: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]
    keys: int = 1


@dataclass(frozen=True, slots=True)
class Contest:
    """One figure of Homeostat beside that of another, or None if it was not measured. `more` is better, or less.

    If both have a 95 % interval and these overlap, neither wins.
    """

    where: str
    other: str
    figure: str
    ours: float | None
    theirs: float | None
    more: bool = False
    intervals: tuple[Interval, Interval] | None = None

    @property
    def verdict(self) -> str:
        if self.ours is None or self.theirs is None:
            return "unknown"
        if self.ours == self.theirs:
            return "equal"
        if self.intervals is not None:
            (low, high), (their_low, their_high) = self.intervals
            if low <= their_high and their_low <= high:
                return "unclear"
        return "wins" if (self.ours > self.theirs) == self.more else "loses"


def no_contests(figures: Figures) -> Iterable[Contest]:
    return ()


def no_target(figures: Figures) -> bool | None:
    return None


@dataclass(frozen=True, slots=True)
class Section:
    """What the page shows of one bench. `reached` is None if the bench has no target, or if it was not measured."""

    bench: str
    title: str
    about: str
    tables: Callable[[Figures], Iterable[Table]]
    target: str = ""
    reached: Callable[[Figures], bool | None] = no_target
    contests: Callable[[Figures], Iterable[Contest]] = no_contests
    on_spark: bool = False


def by_name(names: str | Sequence[str], figures: Mapping[Any, Figures], columns: Mapping[str, str]) -> Table:
    """One row for each name, or for each tuple of names."""
    heads = (names,) if isinstance(names, str) else tuple(names)
    rows = tuple(
        (*(key if isinstance(key, tuple) else (key,)), *(look_up(each, path) for path in columns.values()))
        for key, each in figures.items()
    )
    return Table((*heads, *columns), rows, len(heads))


def facts(figures: Figures, labels: Mapping[str, str]) -> Table:
    """One row for each figure."""
    return Table(("figure", "value"), tuple((label, look_up(figures, path)) for label, path in labels.items()))


def nested(figures: Mapping[str, Any], path: str = "") -> dict[tuple[str, str], Any]:
    """The figures of the second level by both names. With `path`, each first level has them there."""
    return {(name, key): each for name, inner in figures.items() for key, each in value_at(inner, path).items()}


def value_at(figures: Any, path: str) -> Any:
    for key in filter(None, path.split(".")):
        figures = figures[key]
    return figures


def look_up(figures: Figures, path: str) -> str:
    """The value at a path such as "over_oracle.median". "coverage:%" says how to write it: as a percentage, as a share
    with its interval (`:share`), or as the number of its elements (`:count`)."""
    path, colon, style = path.partition(":")
    value = value_at(figures, path)
    return _STYLES[colon + style](value)


def number(value: Any) -> str:
    """Three digits of a fraction, all of an integer, and from to for a range."""
    if value is None:
        return _NONE
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list | tuple):
        return " to ".join(number(each) for each in value)
    if isinstance(value, float):
        return _fraction(value)
    return f"{value:,}" if isinstance(value, int) else str(value)


def _fraction(value: float) -> str:
    if not math.isfinite(value):
        return _NONE
    if value == 0 or abs(value) >= 100:
        return f"{value:,.0f}"
    return f"{value:.3g}" if abs(value) >= 1e-4 else f"{value:.0e}"


def percent(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(percent(each) for each in value)
    return _NONE if value is None or not math.isfinite(value) else f"{value:.3g} %".replace("1e+02", "100")


def _hundredfold(value: Any) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(_hundredfold(each) for each in value)
    return percent(None if value is None else 100.0 * value)


def _share(value: Any) -> str:
    if value["share"] is None:
        return _NONE
    return f"{_hundredfold(value['share'])} ({_hundredfold(value['interval'])})"


def _count(value: Any) -> str:
    return _NONE if value is None else number(len(value))


_STYLES: dict[str, Callable[[Any], str]] = {"": number, ":%": _hundredfold, ":share": _share, ":count": _count}


def against(
    where: str,
    other: str,
    ours: Figures,
    theirs: Figures,
    *,
    less: Mapping[str, str] | None = None,
    more: Mapping[str, str] | None = None,
) -> Iterator[Contest]:
    """The same figures of both: by label, the paths of those of which less is better, and of which more is."""
    for labels, better in ((less or {}, False), (more or {}, True)):
        for label, path in labels.items():
            mine, its = _interval(ours, path), _interval(theirs, path)
            intervals = None if mine is None or its is None else (mine, its)
            yield Contest(where, other, label, value_at(ours, path), value_at(theirs, path), better, intervals)


def _interval(figures: Figures, path: str) -> Interval | None:
    """The interval beside a figure, as benches write it: `interval`, or `low` and `high`."""
    beside = value_at(figures, path.rpartition(".")[0])
    if beside.get("interval") is not None:
        low, high = beside["interval"]
        return low, high
    return (beside["low"], beside["high"]) if "low" in beside and "high" in beside else None
