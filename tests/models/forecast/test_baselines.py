"""Naive forecasts repeat the last value, day or week."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.models.forecast.baselines import LastValue, SeasonalNaive, WeeklyNaive
from homeostat.models.forecast.series import Series

NAN = float("nan")


def test_the_last_known_value_is_repeated() -> None:
    assert LastValue().ahead(Series(0.0, 60.0, np.array([1.0, 2.0, NAN])), 2).tolist() == [2.0, 2.0]
    assert np.isnan(LastValue().ahead(Series(0.0, 60.0, np.array([NAN])), 2)).all()


def test_the_last_season_is_repeated_and_its_gaps_come_from_the_one_before() -> None:
    history = Series(0.0, 60.0, np.array([1.0, 2.0, 3.0, 4.0, NAN, 6.0]), day=3)
    assert SeasonalNaive().ahead(history, 4).tolist() == [4.0, 2.0, 6.0, 4.0]


@pytest.mark.parametrize("forecaster", [SeasonalNaive(), WeeklyNaive()])
def test_without_a_season_nothing_is_said(forecaster: SeasonalNaive | WeeklyNaive) -> None:
    assert np.isnan(forecaster.ahead(Series(0.0, 60.0, np.arange(6.0)), 3)).all()
