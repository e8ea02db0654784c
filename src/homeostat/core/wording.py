"""Formats numbers, times and settings as text, in the same way everywhere."""

from __future__ import annotations

import math
from collections.abc import Mapping
from datetime import datetime

from homeostat.core.configuration import KNOB_KINDS
from homeostat.core.record_json import JSON

SEPARATOR = " · "
# Seconds since 1970 that are shown as dates, from 2001 to the last year that `datetime` can show; less is the time
# since the start of a simulation.
_DATES_S = (1e9, 2.5e11)
# A longer time is not split into days and hours, because it must be an error.
_LONGEST_SPAN_S = 1e12
# How deep nested values are written out: deeper nesting comes from broken data, and could be endless. A choice.
_LEVELS = 20
# Numbers outside this range are written with an exponent.
_PLAIN_NUMBERS = (1e-4, 1e15)
_UNITS = (("_per_s", " /s"), ("_s", " s"), ("_rows", " rows"), ("_bytes", " bytes"))


def moment(at_s: float) -> str:
    """`t+1 h 02 min 10 s` on a simulated clock, which starts at zero; the local time on a real one.

    >>> moment(3730.0)
    't+1 h 02 min 10 s'
    """
    if _DATES_S[0] <= at_s < _DATES_S[1]:
        return f"{datetime.fromtimestamp(at_s):%Y-%m-%d %H:%M:%S}"
    return f"t{'-' if at_s < 0 else '+'}{span(abs(at_s))}"


def span(seconds: float) -> str:
    """A length of time, from its largest unit down to seconds: `2 min 10 s`, `0.5 s`."""
    if not abs(seconds) < _LONGEST_SPAN_S:
        return f"{number(seconds)} s"
    tenths = round(seconds * 10)
    whole_s, tenth = divmod(tenths, 10)
    minutes, rest_s = divmod(whole_s, 60)
    hours, minutes = divmod(minutes, 60)
    days, hours = divmod(hours, 24)
    parts = [(days, " d"), (hours, " h"), (minutes, " min"), (rest_s, f".{tenth} s" if tenth else " s")]
    while len(parts) > 1 and not parts[0][0]:
        parts.pop(0)
    return " ".join(f"{value:02d}{unit}" if place else f"{value}{unit}" for place, (value, unit) in enumerate(parts))


def number(value: float) -> str:
    """Three significant digits; whole numbers in full.

    >>> number(1234.5), number(0.07126), number(12345), number(float("nan"))
    ('1,230', '0.0713', '12,345', 'unknown')
    """
    if isinstance(value, int):
        return f"{value:,}"
    if math.isnan(value):
        return "unknown"
    if math.isinf(value):
        return "infinite" if value > 0 else "-infinite"
    if value != 0 and not _PLAIN_NUMBERS[0] <= abs(value) < _PLAIN_NUMBERS[1]:
        return f"{value:.3g}"
    rounded_value = float(f"{value:.3g}")
    decimals = 0 if rounded_value == 0 else max(0, 2 - math.floor(math.log10(abs(rounded_value))))
    text = f"{rounded_value:,.{decimals}f}"
    return text.rstrip("0").rstrip(".") if "." in text else text


def whole(value: float) -> str:
    """A number of things: rounded to a whole one where that is possible.

    >>> whole(1623.7), whole(float("nan"))
    ('1,624', 'unknown')
    """
    return number(round(value)) if math.isfinite(value) else number(value)


def rows_waiting(rows: float, at_most: float = math.nan) -> str:
    """How many rows wait. With `at_most`, the number is an estimate.

    >>> rows_waiting(1500.0), rows_waiting(1500.0, 3000.0), rows_waiting(float("nan"))
    ('1,500 rows wait', 'about 1,500 rows wait (at most 3,000)', 'unknown rows wait')
    """
    if math.isnan(at_most):
        return f"{whole(rows)} rows wait"
    return f"about {whole(rows)} rows wait (at most {whole(at_most)})"


def whole_span(seconds: float) -> str:
    """A length of time in whole seconds: `2 min 10 s`."""
    return span(round(seconds)) if math.isfinite(seconds) else f"{number(seconds)} s"


def one_line(text: str) -> str:
    """Return the text without line breaks and without control characters, which a terminal would execute."""
    return "".join(each if each.isprintable() else " " for each in " ".join(text.split()))


def words(value: JSON, levels: int = _LEVELS) -> str:
    """Return any value of a record's body as text, down to a limited depth."""
    if value is None:
        return "unknown"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return one_line(value)
    if isinstance(value, int | float):
        return number(value)
    if not levels:
        return "…"
    if isinstance(value, list):
        return ", ".join(words(item, levels - 1) for item in value) or "none"
    return ", ".join(quantity(key, item, levels - 1) for key, item in value.items()) or "none"


def quantity(name: str, value: JSON, levels: int = _LEVELS) -> str:
    """A named value with its unit, which the name carries: `arrival_per_s` 2000 is `arrival 2,000 /s`."""
    unit = ""
    if isinstance(value, int | float) and not isinstance(value, bool):
        for ending, symbol in _UNITS:
            if name.endswith(ending) and name != ending:
                finite = isinstance(value, int) or math.isfinite(value)
                name, unit = name.removesuffix(ending), symbol if finite else ""
                break
    label = name if is_knob(name) else name.replace("_", " ")
    plain = words(value, levels)
    text = f"({plain})" if isinstance(value, dict) and value else plain
    return f"{one_line(label)} {text}{unit}"


def listing(values: Mapping[str, JSON], separator: str = SEPARATOR) -> str:
    return separator.join(quantity(name, value) for name, value in values.items())


def is_knob(name: str) -> bool:
    kind, dot, _ = name.partition(".")
    return bool(dot) and kind in KNOB_KINDS


def settings(values: Mapping[str, JSON], before: Mapping[str, JSON]) -> list[str]:
    """Knobs as `parallelism.count 2 → 8`, or `parallelism.count → 8` if the old value is not known."""
    lines = []
    for name, value in values.items():
        if name == "values" and isinstance(value, dict):
            lines += settings(value, before)
        elif is_knob(name):
            old = f"{knob_value(before[name])} → " if name in before else "→ "
            lines.append(f"{one_line(name)} {old}{knob_value(value)}")
        elif name in ("retire", "workers") and isinstance(value, list):
            lines += [f"replace {words(value)}"] if value else []
        else:
            lines.append(quantity(name, value))
    return lines


def knob_value(value: JSON) -> str:
    """Return the value of a knob in full, because it is a setting and not a measurement."""
    if isinstance(value, float) and math.isfinite(value):
        return f"{value:,.0f}" if value.is_integer() else f"{value:,}"
    return words(value)
