"""The load of a scenario is repaired where that is safe, with a note for each repair, and refused where it is not."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.recorded_data import trace_file
from homeostat.recorded_data.trace_file import Trace, TraceOptions

MINUTES = "timestamp,value\n" + "".join(f"2014-04-10 00:{minute:02}:00,{60 * minute}\n" for minute in range(6))


def parsed(*rows: str, options: TraceOptions | None = None) -> Trace:
    return trace_file.parse("\n".join(["timestamp,value", *rows]), "load.csv", options or TraceOptions())


def refusal(text: str) -> str:
    with pytest.raises(ConfigError) as refused:
        trace_file.parse(text, "load.csv")
    return refused.value.line


def test_counts_per_interval_become_rates_from_time_zero() -> None:
    recorded = trace_file.parse(MINUTES, "load.csv")
    assert recorded.points == tuple((60.0 * minute, float(minute)) for minute in range(6))
    assert recorded.spacing_s == 60
    assert recorded.duration_s == 300
    assert recorded.repairs == ()


def test_values_can_be_rates_already() -> None:
    recorded = trace_file.parse(MINUTES, "load.csv", TraceOptions(values="rate"))
    assert recorded.points[2] == (120.0, 120.0)


def test_scale_multiplies_the_rates_and_speedup_only_the_time() -> None:
    recorded = trace_file.parse(MINUTES, "load.csv", TraceOptions(scale=10, speedup=60))
    assert recorded.points[3] == (3.0, 30.0)
    assert recorded.spacing_s == 1


@pytest.mark.parametrize(
    ("options", "per_s"),
    [(TraceOptions(values="rate"), "2e+15"), (TraceOptions(scale=10), "2e+15")],
)
def test_a_rate_above_the_most_is_refused_with_its_line(options: TraceOptions, per_s: str) -> None:
    with pytest.raises(ConfigError) as refused:
        parsed("10,1", "20,2e15", "0,1", options=options)
    assert refused.value.line.startswith(f"load.csv:3: the value 2e+15 means {per_s} rows/s; the limit is 1e+15")
    assert parsed("0,1e15", "10,1e15", options=TraceOptions(values="rate")).points[0][1] == 1e15


def test_timestamps_may_be_seconds() -> None:
    assert parsed("100.5,10", "110.5,20").points == ((0.0, 1.0), (10.0, 2.0))


def test_an_offset_from_utc_is_heeded() -> None:
    recorded = parsed("2014-04-10T00:00:00Z,10", "2014-04-10T01:00:10+01:00,10")
    assert recorded.duration_s == 10


def test_columns_are_found_by_name_and_others_left_alone() -> None:
    recorded = trace_file.parse("Value, host, Timestamp\n10,a,0\n\n20,b,10\n", "load.csv")
    assert recorded.points == ((0.0, 1.0), (10.0, 2.0))


def test_unsorted_timestamps_are_sorted() -> None:
    recorded = parsed("20,30", "0,10", "10,20")
    assert recorded.points == ((0.0, 1.0), (10.0, 2.0), (20.0, 3.0))
    assert recorded.repairs == ("1 timestamp out of order: sorted",)


def test_duplicate_timestamps_become_their_mean() -> None:
    recorded = parsed("0,10", "0,20", "0,30", "0,nan", "10,10", "20,10")
    assert recorded.points[0] == (0.0, 2.0)
    assert recorded.repairs == ("3 duplicate timestamps: replaced by the mean",)


@pytest.mark.parametrize("missing", ["", "NaN", "null", " NA ", "None"])
def test_missing_values_are_dropped_and_are_a_gap(missing: str) -> None:
    recorded = parsed("0,10", f"10,{missing}", "20,30", "30,30")
    assert recorded.points == ((0.0, 1.0), (20.0, 3.0), (30.0, 3.0))
    assert recorded.repairs == (
        "1 missing value: left out, which leaves a gap",
        "1 gap of up to 20 s: interpolated",
    )


def test_a_missing_value_is_never_read_as_zero() -> None:
    assert all(rate == 1.0 for _, rate in parsed("0,10", "10,", "20,10", "30,nan", "40,10").points)


def test_short_gaps_are_counted_and_long_ones_named() -> None:
    seconds = [0, 1, 2, 5, 6, 7, 11, 12, 13, 14, 74, 75, 76]
    recorded = parsed(*(f"{second},1" for second in seconds))
    assert recorded.repairs == (
        "2 gaps of up to 4 s: interpolated",
        "a long gap of 1 min, 14 s after the start: interpolated; check that this is right",
    )
    strict = parsed(*(f"{second},1" for second in seconds), options=TraceOptions(max_gap_s=3))
    assert [repair.split(",")[0] for repair in strict.repairs[1:]] == ["a long gap of 4 s", "a long gap of 1 min"]


def test_a_trace_with_very_many_long_gaps_names_five() -> None:
    seconds = [burst * 1000 + second for burst in range(20) for second in range(5)]
    repairs = parsed(*(f"{second},1" for second in seconds)).repairs
    assert len(repairs) == 6
    assert repairs[-1] == "14 more long gaps: interpolated; check that this is right"


@pytest.mark.parametrize(
    ("text", "line"),
    [
        (
            "timestamp,value\n0,1\n10,-3\n",
            "load.csv:3: the value -3 is negative (a load is 0 or more)",
        ),
        (
            "timestamp,value\n0,1\n\n10,lots\n",
            "load.csv:4: the value 'lots' is not a number (leave it empty if it is missing)",
        ),
        (
            "timestamp,value\n0,1\n10,inf\n",
            "load.csv:3: the value 'inf' is not a number (leave it empty if it is missing)",
        ),
        (
            "timestamp,value\nyesterday,1\n",
            "load.csv:2: cannot read the timestamp 'yesterday' (use a date, such as '2014-04-10 00:04:00', or seconds)",
        ),
        (
            "timestamp,value\nnan,1\n",
            "load.csv:2: cannot read the timestamp 'nan' (use a date, such as '2014-04-10 00:04:00', or seconds)",
        ),
        ("timestamp,value\n0,1\n10\n", "load.csv:3: has 1 field, but the header has 2"),
        ("timestamp,value\n0,1\n10,1,1\n", "load.csv:3: has 3 fields, but the header has 2"),
        (
            "timestamp,value\n0,1\n2014-04-10,1\n",
            "load.csv:3: mixes dates and numbers as timestamps (use one kind throughout)",
        ),
        ("", "load.csv: is empty (write the header 'timestamp,value' and at least two rows)"),
        ("\n \n", "load.csv: is empty (write the header 'timestamp,value' and at least two rows)"),
        ("timestamp,value\n", "load.csv: needs at least two different timestamps that have a value"),
        ("timestamp,value\n0,1\n", "load.csv: needs at least two different timestamps that have a value"),
        ("timestamp,value\n0,1\n0,2\n", "load.csv: needs at least two different timestamps that have a value"),
        (
            "timestamp,value\n0,nan\n1,\n",
            "load.csv: needs at least two different timestamps that have a value",
        ),
        (
            "time,count\n0,1\n1,2\n",
            "load.csv:1: needs the columns timestamp and value, but has time, count "
            "(write 'timestamp,value' as the first line)",
        ),
        (
            "0,1\n1,2\n",
            "load.csv:1: needs the columns timestamp and value, but has 0, 1 "
            "(write 'timestamp,value' as the first line)",
        ),
        ('timestamp,value\n0,"1"x\n', "load.csv:2: is not valid CSV: ',' expected after '\"'"),
        (
            "timestamp,value\n0,1e308\n1e-9,1\n",
            "load.csv:2: the value 1e+308 means inf rows/s; the limit is 1e+15 (correct it, or lower 'scale')",
        ),
    ],
)
def test_what_cannot_be_repaired_is_refused_with_its_line(text: str, line: str) -> None:
    assert refusal(text) == line


@pytest.mark.parametrize("option", [{"scale": 0.0}, {"scale": float("nan")}, {"speedup": -1.0}])
def test_options_that_make_no_sense_are_refused(option: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be above 0"):
        TraceOptions(**option)  # type: ignore[arg-type]


def test_a_file_is_read_and_a_missing_one_refused(tmp_path: Path) -> None:
    file = tmp_path / "load.csv"
    file.write_bytes(b"\xef\xbb\xbftimestamp,value\r\n0,10\r\n10,20\r\n")
    assert trace_file.read(file).points == ((0.0, 1.0), (10.0, 2.0))
    with pytest.raises(ConfigError, match="no such file"):
        trace_file.read(tmp_path / "none.csv")


@given(
    st.lists(
        st.tuples(st.integers(0, 50), st.one_of(st.floats(0, 1e6), st.just(float("nan")))), min_size=1, max_size=40
    )
)
def test_whatever_the_disorder_time_increases_and_rates_are_numbers(rows: list[tuple[int, float]]) -> None:
    try:
        recorded = parsed(*(f"{time_s},{value!r}" for time_s, value in rows))
    except ConfigError:
        assert len({time_s for time_s, value in rows if value == value}) < 2
        return
    times_s = [time_s for time_s, _ in recorded.points]
    assert times_s[0] == 0
    assert times_s == sorted(set(times_s))
    assert all(rate >= 0 for _, rate in recorded.points)


@given(st.text(alphabet='timestampvalue,\n"0123456789.-: e', max_size=60))
def test_any_text_is_either_read_or_refused_with_its_name(text: str) -> None:
    where = "load.csv"
    try:
        trace_file.parse(text, "load.csv")
    except ConfigError as refused:
        where = refused.where
    assert where.startswith("load.csv")
