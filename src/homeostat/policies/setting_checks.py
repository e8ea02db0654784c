"""Refuses impossible settings when a policy is built, and names them."""

from __future__ import annotations

import math

from homeostat.core.errors import ConfigError


def check_settings(
    settings: object,
    *,
    positive: tuple[str, ...] = (),
    not_negative: tuple[str, ...] = (),
    shares: tuple[str, ...] = (),
    at_least_one: tuple[str, ...] = (),
) -> None:
    """Check fields of `settings` by name. A share lies between 0 and 1, both excluded."""

    def require(names: tuple[str, ...], holds: bool, name: str, value: float, what: str) -> None:
        if name in names and not holds:
            raise ConfigError(f"{name} = {value:g} {what}", where=type(settings).__name__)

    for name in (*positive, *not_negative, *shares, *at_least_one):
        value = float(getattr(settings, name))
        require(positive, value > 0, name, value, "must be above 0")
        require(not_negative, value >= 0, name, value, "must be at least 0")
        require(shares, 0 < value < 1, name, value, "must be between 0 and 1")
        require(at_least_one, value >= 1, name, value, "must be at least 1")
        if math.isnan(value):
            raise ConfigError(f"{name} must be a number", where=type(settings).__name__)
