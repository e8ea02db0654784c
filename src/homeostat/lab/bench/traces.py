"""Loads from CSV files as people keep them: any delimiter, any names of columns, dates or epochs, with holes or not."""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Literal

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import NAN, Array
from homeostat.core.stats import median
from homeostat.strict.toml_reading import read_text

TIME_NAMES = ("timestamp", "time", "datetime", "date", "ts", "ds", "epoch", "start", "period")
VALUE_NAMES = ("value", "count", "rows", "requests", "rate", "arrival_per_s", "y", "load", "hits", "events", "total")

_DELIMITERS = ",;\t|"
_FORMATS = (
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
)
# Epochs above these are in milliseconds, microseconds, nanoseconds: as seconds they would lie beyond the year 5000.
_FINER = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))


@dataclass(frozen=True, slots=True)
class Load:
    """Rates over time as they came: not sorted, not regular, NaN where a value is missing. `sources` has those of each,
    where several are told apart."""

    name: str
    times_s: Array
    per_s: Array
    notes: tuple[str, ...] = ()
    sources: Mapping[str, Array] = field(default_factory=dict)


def read(path: str | Path, values: Literal["count", "rate"] = "count") -> Load:
    return parse(read_text(path), str(path), values)


def parse(text: str, name: str, values: Literal["count", "rate"] = "count") -> Load:
    """`values` are rows per interval (count) or per second (rate). Lines that say nothing are skipped and counted."""
    lines = _lines(text)
    if not lines:
        raise ConfigError("is empty", where=name, fix="it needs a line for each moment: a time and a number")
    time_at, value_at, has_header = _columns(lines, name)
    body = lines[has_header:]
    pairs = [(_time_s(_field(line, time_at)), _number(_field(line, value_at))) for line in body]
    times_s = np.array([time_s for time_s, _ in pairs])
    numbers = np.array([number for _, number in pairs])
    timed = np.isfinite(times_s)
    if len(np.unique(times_s[timed & np.isfinite(numbers)])) < 2:
        raise ConfigError("needs two lines or more with a value and different times", where=name)
    skipped = int((~timed).sum())
    notes = (f"{skipped} of {len(body)} lines without a time: skipped",) if skipped else ()
    times_s, numbers = times_s[timed], numbers[timed]
    spacing_s = median(np.diff(np.unique(times_s)))
    return Load(name, times_s, numbers / spacing_s if values == "count" else numbers, notes)


def _lines(text: str) -> list[list[str]]:
    plain = [line for line in text.lstrip("\ufeff").splitlines() if line.strip() and not line.lstrip().startswith("#")]
    if not plain:
        return []
    delimiter = max(_DELIMITERS, key=plain[0].count)
    rows = csv.reader(io.StringIO("\n".join(plain)), delimiter=delimiter)
    decimal_comma = delimiter != ","
    return [[field.strip().replace(",", ".") if decimal_comma else field.strip() for field in row] for row in rows]


def _columns(lines: Sequence[Sequence[str]], name: str) -> tuple[int, int, bool]:
    """Where time and value stand, and whether the first line is a header."""
    first = [field.lower() for field in lines[0]]
    sample = lines[1] if len(lines) > 1 else lines[0]
    has_header = not any(math.isfinite(_time_s(field)) for field in first)
    time_at = _named(first, TIME_NAMES) if has_header else None
    if time_at is None:
        time_at = next((at for at, field in enumerate(sample) if math.isfinite(_time_s(field))), None)
    value_at = _named(first, VALUE_NAMES, time_at) if has_header else None
    if value_at is None:
        numeric = (at for at, field in enumerate(sample) if at != time_at and math.isfinite(_number(field)))
        value_at = next(numeric, None)
    if time_at is None or value_at is None:
        raise ConfigError(
            f"has no column with a {'time' if time_at is None else 'number'}, found {', '.join(lines[0])}",
            where=name,
            fix="write 'timestamp,value' as the first line",
        )
    return time_at, value_at, has_header


def _named(header: Sequence[str], names: Sequence[str], other: int | None = None) -> int | None:
    return next((header.index(name) for name in names if name in header and header.index(name) != other), None)


def _field(line: Sequence[str], at: int) -> str:
    return line[at] if at < len(line) else ""


def _time_s(field: str) -> float:
    """Seconds since 1970, or since any start; NaN if it is no time. A date without a zone counts as UTC."""
    number = _number(field)
    if math.isfinite(number):
        return number * next((factor for limit, factor in _FINER if abs(number) > limit), 1.0)
    moment = _date(field)
    if moment is None:
        return NAN
    return (moment if moment.tzinfo else moment.replace(tzinfo=UTC)).timestamp()


def _date(field: str) -> datetime | None:
    readers: list[Callable[[str], datetime]] = [datetime.fromisoformat]
    readers += [partial(_written_as, form) for form in _FORMATS]
    for read_as in readers:
        try:
            return read_as(field)
        except ValueError:
            continue
    return None


def _written_as(form: str, field: str) -> datetime:
    return datetime.strptime(field, form)


def _number(field: str) -> float:
    try:
        return float(field)
    except ValueError:
        return NAN
