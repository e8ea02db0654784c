"""The one reader of recorded loads: CSV text with a time and a value on each line.

Any of the delimiters , ; tab and | will do, `#` begins a comment line, and blank lines are skipped. Everyone who needs
a load from a file reads it here: strictly for a scenario, where each bad line is an error, or leniently for a forecast
or a bench, where the columns may have any names and a bad line is skipped.
"""

from __future__ import annotations

import csv
import io
import math
import re
from collections.abc import Iterator, Sequence
from itertools import chain
from typing import NamedTuple

from homeostat.core.errors import ConfigError
from homeostat.core.observation import NAN
from homeostat.recorded_data.load_cells import Time, read_number, read_time

DELIMITERS = ",;\t|"
STRICT_COLUMNS = ("timestamp", "value")
TIME_COLUMNS = ("timestamp", "time", "datetime", "date", "ts", "ds", "epoch", "start", "period")
VALUE_COLUMNS = ("value", "count", "rows", "requests", "rate", "arrival_per_s", "y", "load", "hits", "events", "total")
MISSING_VALUES = ("", "nan", "+nan", "-nan", "na", "n/a", "null", "none")

_COMMENT_LINE = re.compile(r"^[ \t]*#.*$", re.MULTILINE)
_HEADER_FIX = "write 'timestamp,value' as the first line"


class Moment(NamedTuple):
    """One line of the file. `time_s` is NaN where the line has no time, `value` is NaN where it has no value."""

    line: int
    time_s: float
    value: float


class _Row(NamedTuple):
    line: int
    cells: list[str]


class _Columns(NamedTuple):
    time: int
    value: int


def read_strictly(text: str, name: str) -> Iterator[Moment]:
    """The columns `timestamp` and `value`. The first line that cannot be read raises a ConfigError."""
    rows = _rows(text, name, strict=True)
    header = _first(rows, name)
    columns = _named_columns(header, name)
    first_time: Time | None = None
    for row in rows:
        where = f"{name}:{row.line}"
        if len(row.cells) != len(header.cells):
            fields = "1 field" if len(row.cells) == 1 else f"{len(row.cells)} fields"
            raise ConfigError(f"has {fields}, but the header has {len(header.cells)}", where=where)
        time = _required_time(row.cells[columns.time], where)
        first_time = first_time or time
        if time.is_date != first_time.is_date:
            raise ConfigError("mixes dates and numbers as timestamps", where=where, fix="use one kind throughout")
        yield Moment(row.line, time.seconds, _required_value(row.cells[columns.value], where))


def read_leniently(text: str, name: str) -> Iterator[Moment]:
    """The columns that look like a time and a number, by their names or else by what they hold."""
    rows = _rows(text, name, strict=False)
    first = _first(rows, name)
    second = next(rows, None)
    has_header = not any(read_time(cell) for cell in first.cells)
    columns = _likely_columns(first.cells, (second or first).cells, has_header, name)
    body = [] if has_header else [first]
    for row in chain(body, [second] if second else [], rows):
        time = read_time(_cell(row, columns.time))
        yield Moment(row.line, time.seconds if time else NAN, read_number(_cell(row, columns.value)))


def too_short(name: str) -> ConfigError:
    return ConfigError("needs at least two different timestamps that have a value", where=name)


def _rows(text: str, name: str, *, strict: bool) -> Iterator[_Row]:
    """The rows that are not blank. Comments become blank lines, so that line numbers stay right."""
    plain = text.lstrip("\ufeff").replace("\r\n", "\n").replace("\r", "\n")
    plain = _COMMENT_LINE.sub("", plain)
    first_line = next((line for line in plain.split("\n") if line.strip()), "")
    delimiter = max(DELIMITERS, key=first_line.count)
    reader = csv.reader(io.StringIO(plain), delimiter=delimiter, strict=strict)
    try:
        for fields in reader:
            cells = [field.strip() for field in fields]
            if delimiter != ",":
                cells = [cell.replace(",", ".") for cell in cells]  # a decimal comma
            if any(cells):
                yield _Row(reader.line_num, cells)
    except csv.Error as error:
        raise ConfigError(f"is not valid CSV: {error}", where=f"{name}:{reader.line_num}") from None


def _first(rows: Iterator[_Row], name: str) -> _Row:
    first = next(rows, None)
    if first is None:
        raise ConfigError("is empty", where=name, fix="write the header 'timestamp,value' and at least two rows")
    return first


def _named_columns(header: _Row, name: str) -> _Columns:
    names = [cell.lower() for cell in header.cells]
    if not set(STRICT_COLUMNS) <= set(names):
        what = f"needs the columns timestamp and value, but has {', '.join(header.cells)}"
        raise ConfigError(what, where=f"{name}:{header.line}", fix=_HEADER_FIX)
    return _Columns(*(names.index(column) for column in STRICT_COLUMNS))


def _likely_columns(first: Sequence[str], sample: Sequence[str], has_header: bool, name: str) -> _Columns:
    header = [cell.lower() for cell in first] if has_header else []
    time_at = _index_of(header, TIME_COLUMNS)
    if time_at is None:
        time_at = next((at for at, cell in enumerate(sample) if read_time(cell)), None)
    value_at = _index_of(header, VALUE_COLUMNS, except_for=time_at)
    if value_at is None:
        numeric = (at for at, cell in enumerate(sample) if at != time_at and math.isfinite(read_number(cell)))
        value_at = next(numeric, None)
    if time_at is None or value_at is None:
        kind = "times" if time_at is None else "numbers"
        raise ConfigError(f"has no column of {kind}; its columns are {', '.join(first)}", where=name, fix=_HEADER_FIX)
    return _Columns(time_at, value_at)


def _index_of(header: Sequence[str], names: Sequence[str], except_for: int | None = None) -> int | None:
    return next((header.index(name) for name in names if name in header and header.index(name) != except_for), None)


def _cell(row: _Row, at: int) -> str:
    return row.cells[at] if at < len(row.cells) else ""


def _required_time(cell: str, where: str) -> Time:
    time = read_time(cell)
    if time is None:
        fix = "use a date, such as '2014-04-10 00:04:00', or seconds"
        raise ConfigError(f"cannot read the timestamp {cell!r}", where=where, fix=fix)
    return time


def _required_value(cell: str, where: str) -> float:
    if cell.lower() in MISSING_VALUES:
        return NAN
    number = read_number(cell)
    if not math.isfinite(number):
        raise ConfigError(f"the value {cell!r} is not a number", where=where, fix="leave it empty if it is missing")
    if number < 0:
        raise ConfigError(f"the value {cell} is negative", where=where, fix="a load is 0 or more")
    return number
