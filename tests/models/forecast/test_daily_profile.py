"""The usual course of a day, at the level of the last hours."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.models.forecast.daily_profile import Profile
from homeostat.models.forecast.series import Series

DAY = 24
COURSE = 100.0 + 50.0 * np.sin(2 * np.pi * np.arange(DAY) / DAY)


def test_a_day_like_all_others_is_forecast_exactly() -> None:
    history = Series(0.0, 3600.0, np.tile(COURSE, 5), day=DAY)
    assert Profile().ahead(history, DAY) == pytest.approx(COURSE)


def test_a_spike_is_ignored_and_a_new_level_is_followed() -> None:
    values = np.tile(COURSE, 5)
    values[30] = 1e6
    values[-2:] *= 2.0
    forecast = Profile().ahead(Series(0.0, 3600.0, values, day=DAY), DAY)
    assert forecast == pytest.approx(2.0 * COURSE, rel=0.05)


def test_without_a_season_nothing_is_said() -> None:
    assert np.isnan(Profile().ahead(Series(0.0, 3600.0, COURSE), 3)).all()
