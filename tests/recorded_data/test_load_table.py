"""One reader, strict for scenarios and lenient for forecasts, agrees with itself and keeps count of the lines."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.recorded_data.load_table import Moment, read_leniently, read_strictly

PLAIN = "timestamp,value\n0,10\n10,20\n"


@pytest.mark.parametrize("delimiter", [",", ";", "\t", "|"])
def test_any_delimiter_will_do(delimiter: str) -> None:
    text = PLAIN.replace(",", delimiter)
    assert list(read_strictly(text, "load.csv")) == [Moment(2, 0.0, 10.0), Moment(3, 10.0, 20.0)]
    assert list(read_leniently(text, "load.csv")) == list(read_strictly(text, "load.csv"))


def test_line_numbers_count_comments_and_blank_lines() -> None:
    text = "# exported today\n\ntimestamp,value\n0,10\n# a pause\n10,20\n"
    assert [moment.line for moment in read_strictly(text, "load.csv")] == [4, 6]


def test_a_decimal_comma_is_read_where_commas_do_not_separate() -> None:
    (moment,) = read_strictly("timestamp;value\n1,5;2,25\n", "load.csv")
    assert moment == Moment(2, 1.5, 2.25)


def test_what_the_strict_reader_refuses_the_lenient_one_leaves_out() -> None:
    text = "timestamp,value\n0,1\n10,lots\nsoon,3\n"
    with pytest.raises(ConfigError, match=r"load\.csv:3: the value 'lots' is not a number"):
        list(read_strictly(text, "load.csv"))
    _, bad_value, bad_time = read_leniently(text, "load.csv")
    assert (bad_value.time_s, math.isnan(bad_value.value)) == (10.0, True)
    assert (math.isnan(bad_time.time_s), bad_time.value) == (True, 3.0)


@given(st.lists(st.tuples(st.integers(0, 10**6), st.floats(0, 1e9)), min_size=1, max_size=20))
def test_both_read_a_clean_file_alike(rows: list[tuple[int, float]]) -> None:
    text = "timestamp,value\n" + "".join(f"{time_s},{value!r}\n" for time_s, value in rows)
    assert list(read_strictly(text, "load.csv")) == list(read_leniently(text, "load.csv"))
