"""Impossible settings are refused by name."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from homeostat.core.errors import ConfigError
from homeostat.policies.setting_checks import check_settings


@dataclass(frozen=True)
class Some:
    interval_s: float = 10.0
    headroom: float = 0.0
    target: float = 0.8
    count: float = 1.0


CHECKS = {
    "positive": ("interval_s",),
    "not_negative": ("headroom",),
    "shares": ("target",),
    "at_least_one": ("count",),
}


def test_possible_settings_pass() -> None:
    check_settings(Some(), **CHECKS)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        (Some(interval_s=0.0), "interval_s = 0 must be above 0"),
        (Some(headroom=-0.1), "headroom = -0.1 must be at least 0"),
        (Some(target=1.0), "target = 1 must be between 0 and 1"),
        (Some(count=0.5), "count = 0.5 must be at least 1"),
        (Some(interval_s=float("nan")), "interval_s"),
    ],
)
def test_an_impossible_one_is_named(settings: Some, message: str) -> None:
    with pytest.raises(ConfigError, match=message) as refused:
        check_settings(settings, **CHECKS)
    assert refused.value.where == "Some"
