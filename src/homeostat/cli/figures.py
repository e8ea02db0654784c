"""Figures of measurements: how they are given, and how they are shown."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

from homeostat.core.errors import ConfigError


def numbers(text: str, option: str, *, at_least: float) -> list[float]:
    try:
        numbers = [float(part) for part in text.split(",")]
    except ValueError:
        numbers = []
    if not numbers or not all(at_least <= number < math.inf for number in numbers):
        raise ConfigError(
            f"{text!r} is not a list of numbers", where=option, fix=f"write numbers of at least {at_least:g}, as 10,100"
        )
    return numbers


def share(found: Mapping[str, Any]) -> str:
    if found["share"] is None:
        return "-"
    low, high = found["interval"]
    return f"{found['share']:.0%} ({low:.0%} to {high:.0%})"


def shown(value: object) -> str:
    if isinstance(value, list | tuple):
        return " to ".join(shown(item) for item in value)
    if isinstance(value, float) and math.isnan(value):
        return "-"
    return f"{value:.3g}" if isinstance(value, float) else "-" if value is None else str(value)
