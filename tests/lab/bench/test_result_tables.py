"""Figures are written with three digits, and comparisons know which side is better."""

from __future__ import annotations

import math

import pytest

from homeostat.lab.bench.result_tables import Contest, against, by_name, look_up, nested, number, percent


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "–"),
        (math.nan, "–"),
        (True, "yes"),
        (1_234_567, "1,234,567"),
        (0.0, "0"),
        (0.000239, "0.000239"),
        (3.4e-7, "3e-07"),
        (12.3456, "12.3"),
        (98_765.4, "98,765"),
        ([0.5, 1], "0.5 to 1"),
        ("E7", "E7"),
    ],
)
def test_numbers_are_short(value: object, text: str) -> None:
    assert number(value) == text


def test_percentages_have_three_digits() -> None:
    assert [percent(each) for each in (None, 0.0, 7.154, 100.0, [1.0, 2.5])] == [
        "–",
        "0 %",
        "7.15 %",
        "100 %",
        "1 % to 2.5 %",
    ]


def test_a_path_leads_to_a_figure_and_says_how_to_write_it() -> None:
    figures = {
        "found": {"share": 0.5, "interval": [0.2, 0.8]},
        "inner": {"rate": 0.25},
        "actions": [1, 2],
        "left": None,
    }
    assert look_up(figures, "inner.rate") == "0.25"
    assert look_up(figures, "inner.rate:%") == "25 %"
    assert look_up(figures, "found:share") == "50 % (20 % to 80 %)"
    assert look_up({"found": {"share": None, "interval": [0, 1]}}, "found:share") == "–"
    assert (look_up(figures, "actions:count"), look_up(figures, "left:count")) == ("2", "–")


def test_nested_figures_have_two_names() -> None:
    table = by_name(("engine", "policy"), nested({"a": {"all": {"x": {"n": 1}}}}, "all"), {"runs": "n"})
    assert (table.columns, table.rows, table.keys) == (("engine", "policy", "runs"), (("a", "x", "1"),), 2)


def test_the_better_side_wins() -> None:
    less, more = against("here", "ds2", {"s": 3, "f": 3}, {"s": 4, "f": 4}, less={"seconds": "s"}, more={"score": "f"})
    assert (less.verdict, more.verdict) == ("wins", "loses")
    assert Contest("", "", "", 2.0, 2.0).verdict == "equal"
    assert Contest("", "", "", None, 2.0).verdict == "unknown"


@pytest.mark.parametrize(("interval", "verdict"), [([0.3, 0.6], "unclear"), ([0.1, 0.3], "wins")])
def test_overlapping_intervals_have_no_winner(interval: list[float], verdict: str) -> None:
    ours = {"late": {"share": 0.2, "interval": interval}}
    theirs = {"late": {"share": 0.5, "interval": [0.4, 0.6]}}
    (contest,) = against("here", "pid", ours, theirs, less={"late": "late.share"})
    assert contest.verdict == verdict
    (contest,) = against(
        "here",
        "pid",
        {"s": {"median": 1, "low": 0, "high": 2}},
        {"s": {"median": 3, "low": 2, "high": 4}},
        less={"s": "s.median"},
    )
    assert contest.verdict == "unclear"
