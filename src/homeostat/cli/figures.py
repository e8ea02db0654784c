"""Parsing of number lists on the command line, and formatting of measured numbers."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from homeostat.core.errors import ConfigError


def numbers(text: str, option: str, *, at_least: float) -> list[float]:
    try:
        values = [float(part) for part in text.split(",")]
    except ValueError:
        values = []
    if not values or not all(at_least <= value < math.inf for value in values):
        raise ConfigError(
            f"{text!r} is not a list of numbers",
            where=option,
            fix=f"write numbers of at least {at_least:g}, separated by commas",
        )
    return values


def share(estimate: Mapping[str, Any]) -> str:
    if estimate["share"] is None:
        return "-"
    low, high = estimate["interval"]
    return f"{estimate['share']:.0%} ({low:.0%} to {high:.0%})"


def format_figure(value: object) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(format_figure(item) for item in value)
    if isinstance(value, float) and math.isnan(value):
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else "-" if value is None else str(value)
