"""The regression learns the usual course and how long deviations from it last."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.models.forecast.regression import Regression
from homeostat.models.forecast.series import Series

DAY = 48
COURSE = 100.0 + 50.0 * np.sin(2 * np.pi * np.arange(DAY) / DAY)


def test_a_day_like_all_others_is_forecast() -> None:
    history = Series(0.0, 1800.0, np.tile(COURSE, 10), day=DAY)
    assert Regression().ahead(history, DAY) == pytest.approx(COURSE, rel=0.05)


def test_no_forecast_goes_far_beyond_what_was_observed() -> None:
    values = np.tile(COURSE, 10) * np.exp(np.linspace(0.0, 3.0, 10 * DAY))
    forecast = Regression().ahead(Series(0.0, 1800.0, values, day=DAY), DAY)
    assert forecast.max() <= 3.0 * (values.max() + 0.1 * values.mean())


def test_without_a_season_nothing_is_said() -> None:
    assert np.isnan(Regression().ahead(Series(0.0, 1800.0, COURSE), 3)).all()
