"""Numbers on the command line, and how measured numbers are printed."""

from __future__ import annotations

import math

import pytest

from homeostat.cli.figures import format_figure, numbers, share
from homeostat.core.errors import ConfigError


def test_numbers_are_separated_by_commas() -> None:
    assert numbers("10,2.5", "--tasks", at_least=1) == [10.0, 2.5]
    for text in ("", "1,two", "0.5", "inf", "nan"):
        with pytest.raises(ConfigError, match=r"--tasks: .* is not a list of numbers"):
            numbers(text, "--tasks", at_least=1)


def test_what_was_not_measured_is_a_dash() -> None:
    assert [format_figure(value) for value in (math.nan, None, 0.12345, 3, [1.0, 2.0])] == [
        "-",
        "-",
        "0.123",
        "3",
        "1 to 2",
    ]
    assert share({"share": None}) == "-"
    assert share({"share": 0.5, "interval": (0.25, 0.75)}) == "50% (25% to 75%)"
