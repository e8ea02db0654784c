"""Holt-Winters learns a season, follows a damped trend, and says the same in one pass as one by one."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.models.forecast.holt_winters import HoltWinters
from homeostat.models.forecast.series import Series

DAY = 12
COURSE = 100.0 + 50.0 * np.sin(2 * np.pi * np.arange(DAY) / DAY)


def test_a_season_is_learned() -> None:
    history = Series(0.0, 7200.0, np.tile(COURSE, 20), day=DAY)
    assert HoltWinters().ahead(history, DAY) == pytest.approx(COURSE, rel=0.02)


def test_a_trend_is_damped_and_never_negative() -> None:
    rising = HoltWinters().ahead(Series(0.0, 60.0, np.arange(100.0)), 200)
    steps = np.diff(rising)
    assert rising[0] > 90.0
    assert (steps[1:] <= steps[:-1] + 1e-9).all()
    assert (HoltWinters().ahead(Series(0.0, 60.0, np.arange(100.0)[::-1]), 200) >= 0.0).all()


def test_one_pass_over_the_history_gives_what_each_origin_gives() -> None:
    values = np.tile(COURSE, 6) + np.random.default_rng(1).normal(0.0, 5.0, 6 * DAY)
    history = Series(0.0, 7200.0, values, day=DAY)
    rolled = HoltWinters().rolled(history, [40, 60], 5)
    for line, origin in zip(rolled, (40, 60), strict=True):
        assert line == pytest.approx(HoltWinters().ahead(history.until(origin), 5))
