"""A job that is sized once for its peak."""

from __future__ import annotations

import pytest

from homeostat.core.errors import ConfigError
from homeostat.policies.peers import (
    StaticSettings,
    static,
)
from support.trajectories import path, run


def test_static_is_sized_once_for_the_peak() -> None:
    result = run("E8", static(peak_per_s=2e6))
    assert path(result, "source", "flatmap", "count") == [(4, 19, 11)]


def test_static_needs_to_know_its_peak() -> None:
    with pytest.raises(ConfigError, match="peak"):
        static()
    with pytest.raises(ConfigError, match="peak_per_s"):
        StaticSettings(-1.0)
