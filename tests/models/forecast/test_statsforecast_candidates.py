"""Models of statsforecast get a coarse history without gaps, and their answer is put back on the grid."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import Array
from homeostat.models.forecast.series import Series
from homeostat.models.forecast.statsforecast_candidates import FromStatsforecast


class LastDay:
    """In place of a model of the library, which is an extra."""

    def __init__(self, season: int) -> None:
        self.season = season

    def forecast(self, y: Array, h: int) -> dict[str, Array]:
        assert np.isfinite(y).all()
        return {"mean": np.resize(y[-self.season :], h)}


def test_a_fine_grid_is_made_coarser_and_the_answer_finer_again() -> None:
    values = np.repeat(np.tile(np.arange(1.0, 97.0), 3), 15)  # minutes, constant within each quarter of an hour
    values[100] = float("nan")
    forecast = FromStatsforecast("last day", LastDay).ahead(Series(0.0, 60.0, values, day=1440), 31)
    assert forecast.tolist() == [1.0] * 15 + [2.0] * 15 + [3.0]


def test_a_history_that_is_mostly_unknown_says_nothing() -> None:
    values = np.full(300, float("nan"))
    values[:10] = 1.0
    assert np.isnan(FromStatsforecast("last day", LastDay).ahead(Series(0.0, 60.0, values), 5)).all()
