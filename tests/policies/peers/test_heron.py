"""Heron's rule sums and clamps pressure."""

from __future__ import annotations

import pytest

from homeostat.policies.peers import (
    heron,
)
from support.trajectories import path, run


@pytest.mark.slow
def test_heron_sums_and_clamps_and_over_provisions() -> None:
    result = run("E7", heron())
    assert path(result, "flatmap", "count") == [(1, 2), (5, 2), (5, 10), (25, 10), (25, 50)]
