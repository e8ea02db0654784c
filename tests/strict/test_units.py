"""Durations, rates, shares and counts are read with their unit, and never guessed without one."""

from __future__ import annotations

import doctest
import math
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.strict import units


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("180 s", 180),
        ("3 min", 180),
        ("3min", 180),
        ("1 h", 3600),
        ("2 d", 172_800),
        ("500 ms", 0.5),
        ("1.5 hours", 5400),
        ("  1_000 seconds ", 1000),
        ("0 s", 0),
    ],
)
def test_a_duration_is_read_in_seconds(text: str, seconds: float) -> None:
    assert units.parse_duration(text) == pytest.approx(seconds)


@pytest.mark.parametrize(
    ("text", "per_s"),
    [
        ("50 k/s", 50_000),
        ("1_000_000 rows/min", 1_000_000 / 60),
        ("1M/min", 1_000_000 / 60),
        ("4M rows/min", 4_000_000 / 60),
        ("4 M tuples / min", 4_000_000 / 60),
        ("100 k sentences/min", 100_000 / 60),
        ("7200/h", 2),
        ("1 row/s", 1),
        ("2.5G/d", 2.5e9 / 86_400),
    ],
)
def test_a_rate_is_read_in_rows_per_second(text: str, per_s: float) -> None:
    assert units.parse_rate(text) == pytest.approx(per_s)


@pytest.mark.parametrize(
    ("value", "share"), [("20 %", 0.2), ("20%", 0.2), (0.2, 0.2), (1, 1.0), (0, 0.0), ("0.5 %", 0.005)]
)
def test_a_share_is_a_percentage_or_a_number_up_to_one(value: object, share: float) -> None:
    assert units.parse_share(value) == pytest.approx(share)


@pytest.mark.parametrize(("value", "factor"), [("50 %", 1.5), (0.5, 1.5), ("200%", 3.0), (0, 1.0)])
def test_an_error_is_the_logarithm_of_a_factor(value: object, factor: float) -> None:
    assert math.exp(units.parse_error(value)) == pytest.approx(factor)


@pytest.mark.parametrize(("value", "count"), [(12, 12), ("10 k", 10_000), ("1.5M", 1_500_000), ("1_000", 1000)])
def test_a_count_is_a_whole_number(value: object, count: int) -> None:
    assert units.parse_count(value) == count


@pytest.mark.parametrize("value", [180, 0.5, "180", "1e3", -3])
@pytest.mark.parametrize(("parse", "example"), [(units.parse_duration, "'180 s'"), (units.parse_rate, "'50 k/s'")])
def test_a_bare_number_is_refused_with_an_example(
    parse: Callable[[object], float], example: str, value: object
) -> None:
    with pytest.raises(units.UnitError, match=f"needs a unit, such as {example}"):
        parse(value)


@pytest.mark.parametrize("text", ["5 m", "5 parsecs", "50 k/s", "", "s", "1__0 s", "5 s 3", "5 µs", "nan s", "inf s"])
def test_a_wrong_unit_of_a_duration_names_the_dimension_and_an_example(text: str) -> None:
    with pytest.raises(units.UnitError, match=r"must be a duration in ms, s, min, h or d, such as '180 s'"):
        units.parse_duration(text)


@pytest.mark.parametrize("text", ["50 k", "180 s", "50 kB/s", "50 K/s", "50/fortnight", "k/s", "/s", "1M / "])
def test_a_wrong_unit_of_a_rate_names_the_dimension_and_an_example(text: str) -> None:
    with pytest.raises(units.UnitError, match="must be a rate per s, min, h or d, such as '50 k/s'"):
        units.parse_rate(text)


@pytest.mark.parametrize(
    ("parse", "value", "reason"),
    [
        (units.parse_duration, "-3 s", "must not be negative, but is '-3 s'"),
        (units.parse_rate, "-3/s", "must not be negative, but is '-3/s'"),
        (units.parse_duration, "1e999 s", "finite"),
        (units.parse_duration, "1e308 d", "finite"),
        (units.parse_rate, "1e308 G/s", "finite"),
        (units.parse_count, "1e308 G", "finite"),
        (units.parse_duration, True, "must be a duration, such as '180 s', not true"),
        (units.parse_rate, ["1/s"], "not a list"),
        (units.parse_rate, {}, "not a table"),
        (units.parse_share, 20, "from 0 to 1"),
        (units.parse_share, "120 %", "from 0 to 1"),
        (units.parse_share, -0.1, "from 0 to 1"),
        (units.parse_share, float("nan"), "from 0 to 1"),
        (units.parse_share, "20", "such as '20 %' or 0.2"),
        (units.parse_share, True, "not true"),
        (units.parse_error, "-5 %", "must not be negative"),
        (units.parse_error, 2, "from 0 to 1"),
        (units.parse_error, "2", "such as '20 %' or 0.2"),
        (units.parse_count, 1.5, "must be a count"),
        (units.parse_count, "1.5", "must be a count"),
        (units.parse_count, "ten", "must be a count"),
        (units.parse_count, -1, "must not be negative"),
    ],
)
def test_nonsense_is_refused_with_the_reason(parse: Callable[[object], float], value: object, reason: str) -> None:
    with pytest.raises(units.UnitError) as refused:
        parse(value)
    assert reason in str(refused.value)


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (0.25, "250 ms"), (45, "45 s"), (4000, "4000 s"), (7200, "2 h"), (86_400, "1 d"), (1e6, "11.57 d")],
)
def test_a_duration_is_shown_in_the_unit_that_reads_best(seconds: float, text: str) -> None:
    assert units.format_duration(seconds) == text


@given(st.floats(min_value=0, max_value=1e9))
def test_a_shown_duration_or_rate_reads_back(number: float) -> None:
    assert units.parse_duration(units.format_duration(number)) == pytest.approx(number, rel=1e-3, abs=1e-9)
    assert units.parse_rate(units.format_rate(number)) == pytest.approx(number, rel=1e-3, abs=1e-9)


@given(st.integers(min_value=0, max_value=10_000))
def test_a_shown_share_reads_back(hundredths_of_percent: int) -> None:
    share = hundredths_of_percent / 10_000
    assert units.parse_share(units.format_share(share)) == pytest.approx(share)


@given(st.text(max_size=12))
def test_any_text_is_either_read_or_refused_in_words(text: str) -> None:
    for parse in (units.parse_duration, units.parse_rate, units.parse_share, units.parse_error, units.parse_count):
        reason = "must"
        try:
            assert parse(text) >= 0
        except units.UnitError as refused:
            reason = str(refused)
        assert reason.startswith(("must", "needs"))


def test_the_examples_in_the_docstrings_hold() -> None:
    assert doctest.testmod(units).failed == 0
