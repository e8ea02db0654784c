"""Settings that make no sense are refused when a policy is built, by name."""

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
    """Each name is a field of `settings`; a share lies between 0 and 1, both excluded."""

    def require(names: tuple[str, ...], holds: bool, name: str, value: float, what: str) -> None:
        if name in names and not holds:
            raise ConfigError(f"{name} = {value:g} {what}", where=type(settings).__name__)

    for name in (*positive, *not_negative, *shares, *at_least_one):
        value = float(getattr(settings, name))
        require(positive, value > 0, name, value, "is not above 0")
        require(not_negative, value >= 0, name, value, "is not a number of at least 0")
        require(shares, 0 < value < 1, name, value, "is not a share between 0 and 1")
        require(at_least_one, value >= 1, name, value, "is below 1")
        if math.isnan(value):
            raise ConfigError(f"{name} is not a number", where=type(settings).__name__)
