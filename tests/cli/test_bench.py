"""`homeostat bench` in the simulator: wrong options are refused before anything is measured."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Homeostat = Callable[..., Any]


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (("control", "--repeats", "0"), "--repeats"),
        (("models", "--side", "heaven"), "--side: unknown side 'heaven'"),
        (("noise", "--days", "0"), "--days"),
        (("catchup", "--seeds", "0"), "--seeds"),
        (("skew", "--only", "heaven"), "--only: unknown engine 'heaven'"),
    ],
)
def test_what_cannot_be_measured_is_refused(homeostat: Homeostat, arguments: tuple[str, ...], complaint: str) -> None:
    result = homeostat("bench", *arguments)
    assert (result.code, result.out) == (2, "")
    assert complaint in result.err
