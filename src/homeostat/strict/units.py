"""Quantities as people write them ("3 min", "50 k/s", "20 %") and back again."""

from __future__ import annotations

import math
import re
from datetime import datetime

SECONDS = {
    "ms": 0.001,
    "s": 1.0,
    "second": 1.0,
    "seconds": 1.0,
    "min": 60.0,
    "minute": 60.0,
    "minutes": 60.0,
    "h": 3600.0,
    "hour": 3600.0,
    "hours": 3600.0,
    "d": 86_400.0,
    "day": 86_400.0,
    "days": 86_400.0,
}
BYTES = {"B": 1, "kB": 10**3, "KB": 10**3, "MB": 10**6, "GB": 10**9, "TB": 10**12}
MULTIPLES = {"": 1, "k": 1_000, "M": 1_000_000, "G": 1_000_000_000}
_DATES_S = 1e8  # above it, seconds since 1970; below, since the start of a run
ROWS = ("row", "tuple", "record", "event", "sentence", "word", "bid")

_DIGITS = r"[0-9]+(?:_[0-9]+)*"
_NUMBER = rf"(?P<number>[+-]?{_DIGITS}(?:\.{_DIGITS})?(?:[eE][+-]?[0-9]+)?)"
_DURATION = re.compile(rf"{_NUMBER}\s*(?P<unit>[A-Za-z]+)")
_RATE = re.compile(rf"{_NUMBER}\s*(?P<multiple>[kMG]?)\s*(?:\b(?P<noun>{'|'.join(ROWS)})s?)?\s*/\s*(?P<unit>[A-Za-z]+)")
_SHARE = re.compile(rf"{_NUMBER}\s*%")
_COUNT = re.compile(rf"{_NUMBER}\s*(?P<multiple>[kMG]?)")
_BARE = re.compile(_NUMBER)


class UnitError(ValueError):
    """Reads as what follows the name of the value: "needs a unit, such as '180 s'"."""


def parse_duration(value: object) -> float:
    """Seconds.

    >>> parse_duration("3 min")
    180.0
    """
    text = _needs_unit(value, "a duration", "'180 s'")
    match = _DURATION.fullmatch(text)
    if match is None or match["unit"] not in SECONDS:
        raise UnitError(f"must be a duration in ms, s, min, h or d, such as '180 s', not {text!r}")
    return _not_negative(_number(match["number"]) * SECONDS[match["unit"]], text)


def parse_rate(value: object) -> float:
    """Rows per second.

    >>> parse_rate("50 k/s")
    50000.0
    """
    text = _needs_unit(value, "a rate", "'50 k/s' or '1M rows/min'")
    match = _RATE.fullmatch(text)
    if match is None or match["unit"] not in SECONDS:
        raise UnitError(f"must be a rate per s, min, h or d, such as '50 k/s' or '1M rows/min', not {text!r}")
    per_unit = _number(match["number"]) * MULTIPLES[match["multiple"]]
    return _not_negative(per_unit / SECONDS[match["unit"]], text)


def parse_share(value: object) -> float:
    """A number from 0 to 1, or a percentage.

    >>> parse_share("20 %")
    0.2
    """
    if isinstance(value, str):
        match = _SHARE.fullmatch(value.strip())
        if match is None:
            raise UnitError(f"must be a share, such as '20 %' or 0.2, not {value!r}")
        share = _number(match["number"]) / 100
    elif isinstance(value, bool) or not isinstance(value, int | float):
        raise UnitError(f"must be a share, such as '20 %' or 0.2, not {format_value(value)}")
    else:
        share = float(value)
    if not 0 <= share <= 1:
        raise UnitError(f"must be a share from 0 to 1 ('0 %' to '100 %'), not {format_value(value)}")
    return share


def parse_error(value: object) -> float:
    """How far a time may be off, as the ln of the factor; more than 100 % only as a percentage.

    >>> round(parse_error("50 %"), 3)
    0.405
    """
    if isinstance(value, str) and (match := _SHARE.fullmatch(value.strip())):
        return math.log1p(_not_negative(_number(match["number"]) / 100, value))
    return math.log1p(parse_share(value))


def parse_count(value: object) -> int:
    """A whole number, as such or with k, M or G.

    >>> parse_count("1.5M")
    1500000
    """
    number: float | int | None = None
    if isinstance(value, str) and (match := _COUNT.fullmatch(value.strip())):
        number = _finite(_number(match["number"]) * MULTIPLES[match["multiple"]], value)
    elif isinstance(value, int) and not isinstance(value, bool):
        number = value
    if number is None or number != int(number):
        raise UnitError(f"must be a count, such as 1000 or '10 k', not {format_value(value)}")
    if number < 0:
        raise UnitError(f"must not be negative, but is {format_value(value)}")
    return int(number)


def parse_size(value: object) -> int:
    """Bytes.

    >>> parse_size("512 MB")
    512000000
    """
    text = _needs_unit(value, "a size", "'512 MB'")
    match = _DURATION.fullmatch(text)
    if match is None or match["unit"] not in BYTES:
        raise UnitError(f"must be a size in kB, MB, GB or TB, such as '512 MB', not {text!r}")
    return int(_not_negative(_number(match["number"]) * BYTES[match["unit"]], text))


def format_size(size: float) -> str:
    """
    >>> format_size(512_000_000), format_size(1_234_567_890), format_size(0)
    ('512 MB', '1.23 GB', '0 B')
    """
    for unit in ("TB", "GB", "MB", "kB"):
        if abs(size) >= BYTES[unit]:
            return f"{size / BYTES[unit]:.3g} {unit}"
    return f"{size:.0f} B"


def format_duration(seconds: float) -> str:
    """
    >>> format_duration(180), format_duration(90), format_duration(0.5)
    ('3 min', '90 s', '500 ms')
    """
    for unit in ("d", "h", "min"):
        number = seconds / SECONDS[unit]
        if abs(number) >= 1 and number == round(number):
            return f"{number:.10g} {unit}"
    if abs(seconds) >= 2 * SECONDS["d"]:
        return f"{seconds / SECONDS['d']:.4g} d"
    if abs(seconds) >= 2 * SECONDS["h"]:
        return f"{seconds / SECONDS['h']:.4g} h"
    if 0 < abs(seconds) < 1:
        return f"{seconds * 1000:.4g} ms"
    return f"{seconds:.6g} s"


def format_rate(per_s: float) -> str:
    """In the unit that makes it a round number, if there is one.

    >>> format_rate(50_000.0), format_rate(1_000_000 / 60)
    ('50k rows/s', '1M rows/min')
    """
    for unit in ("s", "min", "h"):
        number = per_s * SECONDS[unit]
        if math.isclose(number, float(f"{number:.3g}"), rel_tol=1e-9):
            return f"{format_count(number)} rows/{unit}"
    return f"{format_count(per_s)} rows/s"


def format_share(share: float) -> str:
    """
    >>> format_share(0.2)
    '20 %'
    """
    return f"{share * 100:.4g} %"


def format_count(number: float) -> str:
    """
    >>> format_count(1_500_000), format_count(12)
    ('1.5M', '12')
    """
    for suffix in ("G", "M", "k"):
        if abs(number) >= MULTIPLES[suffix]:
            return f"{number / MULTIPLES[suffix]:.4g}{suffix}"
    return f"{number:.4g}"


def _needs_unit(value: object, dimension: str, example: str) -> str:
    if isinstance(value, str) and not _BARE.fullmatch(value.strip()):
        return value.strip()
    if isinstance(value, bool) or not isinstance(value, int | float | str):
        raise UnitError(f"must be {dimension}, such as {example}, not {format_value(value)}")
    raise UnitError(f"needs a unit, such as {example}")


def _number(digits: str) -> float:
    return _finite(float(digits), digits)


def _finite(number: float, text: str) -> float:
    if not math.isfinite(number):
        raise UnitError(f"must be a finite number, not {text!r}")
    return number


def _not_negative(number: float, text: str) -> float:
    if number < 0:
        raise UnitError(f"must not be negative, but is {text!r}")
    return _finite(number, text)


def format_value(value: object) -> str:
    """A value as a message names it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, dict):
        return "a table"
    if isinstance(value, list):
        return "a list"
    if isinstance(value, float):
        return f"{value:.10g}"
    return repr(value) if isinstance(value, str) else f"{value}"


def clock(seconds: float) -> str:
    """Time since a start; of a real clock, which counts from 1970, the local time of day.

    >>> clock(4210)
    '1:10:10'
    """
    if seconds > _DATES_S:
        return f"{datetime.fromtimestamp(seconds):%H:%M:%S}"
    whole = round(seconds)
    sign = "-" if whole < 0 else ""
    minutes, second = divmod(abs(whole), 60)
    hours, minute = divmod(minutes, 60)
    return f"{sign}{hours}:{minute:02d}:{second:02d}"
