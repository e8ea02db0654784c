"""From times and rates as they come to a regular grid."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.observation import NAN
from homeostat.models.forecast.series import MOST_POINTS, detected_season, regular

DAY_S = 86_400.0


def test_rows_come_in_any_order_and_doubled() -> None:
    resampled = regular(np.array([120.0, 0.0, 60.0, 60.0]), np.array([3.0, 1.0, 2.0, 4.0]), horizon_s=600.0)
    assert resampled.values.tolist() == [1.0, 3.0, 3.0]
    assert (resampled.start_s, resampled.step_s, resampled.end_s) == (0.0, 60.0, 180.0)


def test_a_gap_is_unknown_not_zero() -> None:
    resampled = regular(np.array([0.0, 60.0, 240.0, 300.0]), np.ones(4), horizon_s=600.0)
    assert np.isnan(resampled.values).tolist() == [False, False, True, True, False, False]
    assert resampled.known_count == 4


def test_what_no_load_can_be_is_left_out_and_reported() -> None:
    values = np.full(40, 5.0)
    values[[3, 7, 11, 13]] = [-1.0, NAN, 1e12, np.inf]
    resampled = regular(np.arange(40) * 60.0, values, horizon_s=600.0)
    assert np.flatnonzero(np.isnan(resampled.values)).tolist() == [3, 7, 11, 13]
    assert resampled.repairs == (
        "values left out: 1 missing",
        "values left out: 2 negative or infinite",
        "values left out: 1 above 1000 times the usual peak",
    )


def test_bursts_that_come_again_are_how_the_source_is() -> None:
    values = np.full(1000, 5.0)
    values[::100] = 1e6
    resampled = regular(np.arange(1000) * 60.0, values, horizon_s=600.0)
    assert (resampled.known_count, resampled.repairs) == (1000, ())


@pytest.mark.parametrize(
    ("spacing_s", "count", "horizon_s", "step_s"),
    [
        (60.0, 10_080, 3600.0, 60.0),
        (60.0, 10_080, DAY_S, 300.0),
        (300.0, 15_000, DAY_S, 300.0),
        (60.0, 40_000, DAY_S, 300.0),
        (1800.0, 10_320, DAY_S, 1800.0),
        (10.3, 1000, 600.0, 15.0),
        (0.1, 1000, 10.0, 1.0),
    ],
)
def test_the_step_suits_spacing_history_and_horizon(
    spacing_s: float, count: int, horizon_s: float, step_s: float
) -> None:
    resampled = regular(np.arange(count) * spacing_s, np.ones(count), horizon_s=horizon_s)
    assert resampled.step_s == step_s
    assert len(resampled.values) <= MOST_POINTS


def test_an_endless_gap_costs_nothing() -> None:
    resampled = regular(np.array([0.0, 1.0, 2.0, 3.0, 4e9, 4e9 + 1]), np.ones(6), horizon_s=8.0)
    assert resampled.values.tolist() == [1.0, 1.0]


def test_day_and_week_count_once_they_were_seen_twice() -> None:
    week, fortnight = (regular(np.arange(days * 24) * 3600.0, np.ones(days * 24), horizon_s=3600.0) for days in (7, 14))
    assert (week.day, week.week) == (24, 0)
    assert (fortnight.day, fortnight.week) == (24, 168)
    assert (fortnight.until(40).day, fortnight.until(48).day, fortnight.until(48).week) == (0, 24, 0)


def test_a_season_is_found_only_where_there_is_one() -> None:
    noise = np.random.default_rng(2).normal(0.0, 1.0, 600)
    assert detected_season(noise) == 0
    assert detected_season(np.ones(600)) == 0
    assert detected_season(np.linspace(0.0, 100.0, 600) + noise) == 0
    assert detected_season(10 * np.sin(np.arange(600) / 50 * 2 * np.pi) + noise) == pytest.approx(50, abs=1)
    assert detected_season(np.empty(0)) == 0
