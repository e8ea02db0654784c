"""Times and numbers as they stand in files."""

from __future__ import annotations

import math
from datetime import UTC, datetime

import pytest

from homeostat.recorded_data.load_cells import LARGEST_TIME_S, Time, read_number, read_time

MOMENT = datetime(2024, 2, 1, 12, 30, tzinfo=UTC).timestamp()


@pytest.mark.parametrize(
    "cell",
    [
        "2024-02-01 12:30",
        "2024-02-01T12:30:00Z",
        "2024-02-01T13:30:00+01:00",
        "2024/02/01 12:30",
        "01.02.2024 12:30:00",
        "02/01/2024 12:30",
    ],
)
def test_dates_are_read_in_the_usual_formats_and_as_utc_without_a_zone(cell: str) -> None:
    assert read_time(cell) == Time(MOMENT, is_date=True)


@pytest.mark.parametrize("per_second", [1, 10**3, 10**6, 10**9])
def test_epochs_may_be_in_seconds_milliseconds_microseconds_or_nanoseconds(per_second: int) -> None:
    time = read_time(str(int(MOMENT) * per_second))
    assert time is not None
    assert time.seconds == pytest.approx(MOMENT)
    assert not time.is_date


@pytest.mark.parametrize("cell", ["", "yesterday", "nan", "inf", f"{LARGEST_TIME_S * 1e10}"])
def test_anything_else_is_not_a_time(cell: str) -> None:
    assert read_time(cell) is None


def test_a_cell_that_is_not_a_number_is_nan() -> None:
    assert read_number("1.5e3") == 1500.0
    assert math.isnan(read_number("n/a"))
