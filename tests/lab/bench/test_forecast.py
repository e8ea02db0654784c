"""`homeostat bench forecast`: forecasts of recorded loads against what came."""

from __future__ import annotations

import math

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.lab.bench import forecast as bench
from homeostat.models.forecast import CANDIDATES, Series
from homeostat.recorded_data.load import Load

HOUR_S, DAY_S = 3600.0, 86_400.0


def daily(days: int, noise: float = 0.1) -> Load:
    times_s = np.arange(0.0, days * DAY_S, 1800.0)
    drawn = np.random.default_rng(4).normal(0.0, noise, len(times_s))
    return Load("daily", times_s, 100 * (1 + 0.6 * np.sin(times_s / DAY_S * 2 * np.pi)) * np.exp(drawn))


def test_a_daily_load_is_forecast_better_than_by_all_that_is_naive() -> None:
    lines: list[str] = []
    result = bench.measure([daily(14)], horizons_s=(HOUR_S, DAY_S), origins=6, tell=lines.append)
    assert len(lines) == 1
    figures = result["traces"]["daily"]
    assert list(figures["horizons"]) == ["1 h", "1 d"]
    day = figures["horizons"]["1 d"]
    assert day["origins"] == sum(day["champions"].values()) == 6
    assert day["mase"]["champion"] < 0.9 * day["mase"]["seasonal naive"] < day["mase"]["last value"]
    assert 0.6 < result["mean_coverage"] < 0.95
    assert result["champion_over"]["seasonal naive"] < 0.9
    assert result["worst"]["champion ÷ seasonal naive"]["at"].startswith("daily, ")


class Silent:
    name = "silent"

    def ahead(self, history: Series, steps: int) -> Array:
        return np.full(steps, math.nan)


def test_a_candidate_that_cannot_speak_is_not_compared() -> None:
    result = bench.measure([daily(6)], horizons_s=(HOUR_S,), origins=4, candidates=[*CANDIDATES[:2], Silent()])
    assert "silent" not in result["champion_over"]
    assert result["champion_over"]["last value"] <= 1.0


def test_what_is_judged_was_not_seen() -> None:
    """After the last origin the load is another one entirely: no forecast can have known."""
    load = daily(10)
    changed = Load("changed", load.times_s, np.where(load.times_s >= 9 * DAY_S, 100_000.0, load.per_s))
    result = bench.measure([changed], horizons_s=(DAY_S,), origins=4)
    assert result["traces"]["changed"]["horizons"]["1 d"]["mase"]["champion"] > 10


def test_a_horizon_too_long_for_the_trace_is_left_out_and_without_any_it_is_refused() -> None:
    result = bench.measure([daily(3)], horizons_s=(HOUR_S, DAY_S), origins=4)
    assert list(result["traces"]["daily"]["horizons"]) == ["1 h"]
    with pytest.raises(ConfigError, match="too short to forecast 1 d ahead"):
        bench.measure([daily(1)], horizons_s=(DAY_S,), origins=4)


def test_a_load_that_never_changes_has_no_error_to_compare() -> None:
    load = Load("flat", np.arange(0.0, 5 * DAY_S, 1800.0), np.full(240, 7.0))
    result = bench.measure([load], horizons_s=(HOUR_S,), origins=4)
    assert result["traces"]["flat"]["horizons"]["1 h"]["mase"] == {}
    assert result["champion_over"] == {}
