"""A recorded load: CSV with `timestamp,value`, repaired where that is safe and refused where it is not."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Iterator
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.sim.scenario.tables import FASTEST_PER_S
from homeostat.strict.toml_reading import read_text
from homeostat.strict.units import format_duration

COLUMNS = ("timestamp", "value")
MISSING = ("", "nan", "na", "n/a", "null", "none")
GAP_FROM = 1.5
MAX_GAP_SPACINGS = 10
LONG_GAPS_NAMED = 5
LARGEST_TIME_S = 1e15


@dataclass(frozen=True, slots=True)
class Trace:
    """(seconds from the first timestamp, rows per second), and every repair that was made to get them."""

    points: tuple[tuple[float, float], ...]
    spacing_s: float
    repairs: tuple[str, ...] = ()

    @property
    def duration_s(self) -> float:
        return self.points[-1][0]


@dataclass(frozen=True, slots=True)
class TraceOptions:
    """`values`: rows per interval (count) or per second (rate). `scale` multiplies the rates.

    `speedup` makes time pass faster and leaves the rates alone. A gap above `max_gap_s` (default ten times
    the usual spacing) is named on its own among the repairs.
    """

    values: Literal["count", "rate"] = "count"
    scale: float = 1.0
    speedup: float = 1.0
    max_gap_s: float | None = None

    def __post_init__(self) -> None:
        for name in ("scale", "speedup"):
            number = getattr(self, name)
            if not (math.isfinite(number) and number > 0):
                raise ConfigError(f"a trace's '{name}' must be above 0, not {number}")


def read(path: str | Path, options: TraceOptions = TraceOptions()) -> Trace:  # noqa: B008 (a frozen value)
    return parse(read_text(path), str(path), options)


def parse(text: str, name: str, options: TraceOptions = TraceOptions()) -> Trace:  # noqa: B008 (a frozen value)
    rows = list(_rows(text, name))
    repairs: list[str] = []
    times_s, values = _sorted([(time_s, value) for time_s, value, _ in rows], repairs)
    times_s, values = _without_duplicates(times_s, values, repairs)
    if len(times_s) < 2:
        raise _too_short(name)
    spacing_s = float(np.median(np.diff(times_s)))
    known = ~np.isnan(values)
    if not known.all():
        repairs.append(f"{_number(int((~known).sum()), 'value')} missing: dropped and treated as a gap")
    times_s, values = times_s[known], values[known]
    if len(times_s) < 2:
        raise _too_short(name)
    _note_gaps(times_s, spacing_s, options.max_gap_s, repairs)
    per_value = options.scale / (spacing_s if options.values == "count" else 1.0)
    _refuse_too_fast(rows, per_value, name)
    with np.errstate(over="ignore", invalid="ignore"):
        rates = values * per_value
        offsets_s = (times_s - times_s[0]) / options.speedup
    if not np.isfinite(rates).all():
        raise ConfigError("the rates are too large to be numbers", where=name, fix="lower 'scale'")
    if not np.isfinite(offsets_s).all():
        raise ConfigError("the times are too large to be numbers", where=name, fix="raise 'speedup'")
    points = tuple(zip(offsets_s.tolist(), rates.tolist(), strict=True))
    return Trace(points, spacing_s / options.speedup, tuple(repairs))


def _rows(text: str, name: str) -> Iterator[tuple[float, float, int]]:
    """(seconds, value or NaN, line) of each row, as they stand in the file."""
    reader = csv.reader(io.StringIO(text), strict=True)
    columns: tuple[int, int] | None = None
    width = 0
    is_date: bool | None = None
    try:
        for fields in reader:
            where = f"{name}:{reader.line_num}"
            if not any(field.strip() for field in fields):
                continue
            if columns is None:
                columns, width = _columns(fields, where), len(fields)
                continue
            if len(fields) != width:
                raise ConfigError(f"has {_number(len(fields), 'field')} where the header has {width}", where=where)
            time_s, dated = _time(fields[columns[0]], where)
            is_date = dated if is_date is None else is_date
            if dated != is_date:
                raise ConfigError("mixes dates and numbers as timestamps", where=where, fix="use one of them")
            yield time_s, _value(fields[columns[1]], where), reader.line_num
    except csv.Error as error:
        raise ConfigError(f"is not CSV: {error}", where=f"{name}:{reader.line_num}") from None
    if columns is None:
        raise ConfigError("is empty", where=name, fix="it needs a header 'timestamp,value' and two rows or more")


def _columns(header: list[str], where: str) -> tuple[int, int]:
    found = [field.strip().lower() for field in header]
    if not set(COLUMNS) <= set(found):
        raise ConfigError(
            f"needs the columns timestamp and value, found {', '.join(field.strip() for field in header)}",
            where=where,
            fix="write 'timestamp,value' as the first line",
        )
    return found.index("timestamp"), found.index("value")


def _time(field: str, where: str) -> tuple[float, bool]:
    """Seconds, and whether it was a date. A date without a time zone counts as UTC."""
    text = field.strip()
    try:
        seconds = float(text)
    except ValueError:
        pass
    else:
        if abs(seconds) <= LARGEST_TIME_S:
            return seconds, False
    try:
        moment = datetime.fromisoformat(text)
    except ValueError:
        raise ConfigError(
            f"the timestamp {text!r} cannot be read", where=where, fix="such as '2014-04-10 00:04:00' or seconds"
        ) from None
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp(), True


def _value(field: str, where: str) -> float:
    text = field.strip()
    if text.lower() in MISSING:
        return math.nan
    try:
        number = float(text)
    except ValueError:
        number = math.inf
    if math.isnan(number):
        return math.nan
    if not math.isfinite(number):
        raise ConfigError(f"the value {text!r} is not a number", where=where)
    if number < 0:
        raise ConfigError(f"the value {text} is negative, which no load can be", where=where)
    return number


def _refuse_too_fast(rows: list[tuple[float, float, int]], per_value: float, name: str) -> None:
    for _, value, line in rows:
        if value * per_value > FASTEST_PER_S:
            raise ConfigError(
                f"the value {value:g} is {value * per_value:g} rows/s, above the most, which is {FASTEST_PER_S:g}",
                where=f"{name}:{line}",
                fix="correct it, or lower 'scale'",
            )


def _sorted(rows: list[tuple[float, float]], repairs: list[str]) -> tuple[Array, Array]:
    times_s = np.array([time_s for time_s, _ in rows], dtype=np.float64)
    values = np.array([value for _, value in rows], dtype=np.float64)
    backward = int((np.diff(times_s) < 0).sum())
    if backward:
        repairs.append(f"{_number(backward, 'timestamp')} out of order: sorted")
    order = np.argsort(times_s, kind="stable")
    return times_s[order], values[order]


def _without_duplicates(times_s: Array, values: Array, repairs: list[str]) -> tuple[Array, Array]:
    """One row per timestamp with the mean of its known values."""
    unique_s, group = np.unique(times_s, return_inverse=True)
    extra = len(times_s) - len(unique_s)
    if not extra:
        return times_s, values
    repairs.append(f"{_number(extra, 'duplicate timestamp')}: replaced by the mean")
    known = ~np.isnan(values)
    totals = np.bincount(group[known], weights=values[known], minlength=len(unique_s))
    counts = np.bincount(group[known], minlength=len(unique_s))
    means = np.full(len(unique_s), np.nan)
    np.divide(totals, counts, out=means, where=counts > 0)
    return unique_s, means


def _note_gaps(times_s: Array, spacing_s: float, max_gap_s: float | None, repairs: list[str]) -> None:
    limit_s = MAX_GAP_SPACINGS * spacing_s if max_gap_s is None else max_gap_s
    widths_s = np.diff(times_s)
    gaps = widths_s > GAP_FROM * spacing_s
    short = gaps & (widths_s <= limit_s)
    if short.any():
        widest = format_duration(float(widths_s[short].max()))
        repairs.append(f"{_number(int(short.sum()), 'gap')} of up to {widest}: interpolated")
    long = np.flatnonzero(gaps & ~short)
    for index in long[:LONG_GAPS_NAMED]:
        width, start = format_duration(float(widths_s[index])), format_duration(float(times_s[index] - times_s[0]))
        repairs.append(f"a long gap of {width}, {start} after the start: interpolated all the same, so check it")
    if len(long) > LONG_GAPS_NAMED:
        repairs.append(f"{len(long) - LONG_GAPS_NAMED} more long gaps: interpolated all the same, so check them")


def _too_short(name: str) -> ConfigError:
    return ConfigError("needs two rows or more with a value and different timestamps", where=name)


def _number(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
