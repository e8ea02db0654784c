"""Forecasts the load minutes to days ahead, with intervals, by the candidate that was best for this source so far."""

from homeostat.models.forecast.backtest import ORIGINS
from homeostat.models.forecast.baselines import Forecaster
from homeostat.models.forecast.champion import CANDIDATES, QUANTILES, Forecast, Score, forecast, forecasts
from homeostat.models.forecast.series import Series, regular

__all__ = [
    "CANDIDATES",
    "ORIGINS",
    "QUANTILES",
    "Forecast",
    "Forecaster",
    "Score",
    "Series",
    "forecast",
    "forecasts",
    "regular",
]
