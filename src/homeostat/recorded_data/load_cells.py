"""The cells of a recorded load: numbers, and times as dates or epochs."""

from __future__ import annotations

import math
from datetime import UTC, datetime
from typing import NamedTuple

from homeostat.core.observation import NAN

DATE_FORMATS = (
    "%Y/%m/%d %H:%M:%S",
    "%Y/%m/%d %H:%M",
    "%d.%m.%Y %H:%M:%S",
    "%d.%m.%Y %H:%M",
    "%m/%d/%Y %H:%M:%S",
    "%m/%d/%Y %H:%M",
)
# Epochs above these are in nanoseconds, microseconds or milliseconds: as seconds they would lie after the year 5000.
FINER_UNITS = ((1e17, 1e-9), (1e14, 1e-6), (1e11, 1e-3))
# Beyond this a float no longer tells one second from the next reliably.
LARGEST_TIME_S = 1e15


class Time(NamedTuple):
    """Seconds since 1970, or since any other start."""

    seconds: float
    is_date: bool


def read_number(cell: str) -> float:
    """NaN if the cell is not a number."""
    try:
        return float(cell)
    except ValueError:
        return NAN


def read_time(cell: str) -> Time | None:
    """None if the cell is not a time. A date without a time zone counts as UTC."""
    number = read_number(cell)
    if math.isfinite(number):
        seconds = number * next((factor for limit, factor in FINER_UNITS if abs(number) > limit), 1.0)
        return Time(seconds, is_date=False) if abs(seconds) <= LARGEST_TIME_S else None
    date = _read_date(cell)
    if date is None:
        return None
    return Time((date if date.tzinfo else date.replace(tzinfo=UTC)).timestamp(), is_date=True)


def _read_date(cell: str) -> datetime | None:
    try:
        return datetime.fromisoformat(cell)
    except ValueError:
        pass
    for date_format in DATE_FORMATS:
        try:
            return datetime.strptime(cell, date_format)
        except ValueError:
            continue
    return None
