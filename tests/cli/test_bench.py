"""`homeostat bench` in the simulator: wrong options are refused, and a figure is the same in both forms of output."""

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
        (("skew", "--only", "heaven"), "--only: unknown engine 'heaven'"),
        (("forecast", "--horizon", "0 s"), "--horizon: must be above 0"),
    ],
)
def test_what_cannot_be_measured_is_refused(homeostat: Homeostat, arguments: tuple[str, ...], complaint: str) -> None:
    ran = homeostat("bench", *arguments)
    assert (ran.code, ran.out) == (2, "")
    assert complaint in ran.err


def test_the_table_has_a_row_for_each_figure_of_the_json(homeostat: Homeostat) -> None:
    call = ("bench", "noise", "--engine", "dataflow", "--days", "1", "--seeds", "1")
    figures = homeostat(*call, "--json").json["engines"]["dataflow"]
    table = homeostat(*call)
    assert table.code == 0
    assert [line.split()[1] for line in table.out.splitlines()[1:]] == list(figures)
