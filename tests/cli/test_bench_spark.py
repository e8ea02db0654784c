"""`homeostat bench` on Spark: wrong options are refused before a cluster starts."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("twin", "--only", "half"), "--only: unknown part 'half'"),
        (("heal", "--factors", "2,fast"), "--factors: '2,fast' is not a list of numbers"),
        (("heal", "--factors", "1"), "--factors: '1' is not a list of numbers"),
        (("overhead", "--tasks", "10,,100"), "--tasks: '10,,100' is not a list of numbers"),
        (("overhead", "--tasks", "1"), "(write numbers of at least 4, separated by commas)"),
    ],
)
def test_what_cannot_be_measured_is_refused_before_a_cluster_starts(
    homeostat: Callable[..., Any], arguments: tuple[str, ...], complaint: str
) -> None:
    result = homeostat("bench", *arguments)
    assert result.code == 2
    assert complaint in result.err
    assert result.out == ""
