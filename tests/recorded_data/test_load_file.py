"""A load comes out of CSV files of many shapes; lines without a time are skipped, and a note says so."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.recorded_data import load_file


def lines(*rows: str) -> str:
    return "\n".join(rows)


START_S = datetime(2024, 1, 1, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "text",
    [
        lines("timestamp,value", "2024-01-01 00:00:00,60", "2024-01-01 00:01:00,120"),
        lines("\ufeffds;y", "2024-01-01T00:00:00Z;60,0", "2024-01-01T00:01:00Z;120,0"),
        lines("# from the proxy", "", "time\thost\trequests", f"{START_S:.0f}\ta\t60", f"{START_S + 60:.0f}\tb\t120"),
        lines(f"{START_S * 1000:.0f},60", f"{(START_S + 60) * 1000:.0f},120"),
        lines("id,when,n", "x,2024/01/01 00:00,60", "y,2024/01/01 00:01,120"),
        lines("value,timestamp", "60,2024-01-01 01:00:00+01:00", "120,2024-01-01 01:01:00+01:00"),
        lines("date|count", "01.01.2024 00:01|120", "01.01.2024 00:00|60"),
    ],
)
def test_files_of_many_shapes_say_the_same(text: str) -> None:
    load = load_file.parse(text, "load.csv")
    order = np.argsort(load.times_s)
    assert load.times_s[order].tolist() == [START_S, START_S + 60]
    assert load.per_s[order].tolist() == [1.0, 2.0]
    assert load_file.parse(text, "load.csv", "rate").per_s[order].tolist() == [60.0, 120.0]


def test_lines_that_say_nothing_are_skipped_and_reported() -> None:
    load = load_file.parse(lines("timestamp,value", "0,60", "oops", "60,n/a", "120,60,extra"), "load.csv")
    assert load.times_s.tolist() == [0.0, 60.0, 120.0]
    assert np.isnan(load.per_s).tolist() == [False, True, False]
    assert load.notes == ("1 of 4 lines have no time and were skipped",)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ("", "load.csv: is empty"),
        ("a,b\nx,y\n", "load.csv: has no column of times; its columns are a, b"),
        ("timestamp,name\n2024-01-01,x\n", "load.csv: has no column of numbers"),
        ("timestamp,value\n5,1\n5,2\n", "needs at least two different timestamps that have a value"),
    ],
)
def test_a_file_without_a_load_is_refused(text: str, complaint: str) -> None:
    with pytest.raises(ConfigError) as refused:
        load_file.parse(text, "load.csv")
    assert complaint in refused.value.line


def test_a_month_of_minutes_is_read_in_full() -> None:
    start = datetime(2024, 1, 1, tzinfo=UTC)
    rows = [f"{start + timedelta(minutes=minute)},{minute % 7}" for minute in range(30 * 1440)]
    assert len(load_file.parse(lines("timestamp,value", *rows), "load.csv").per_s) == 30 * 1440
