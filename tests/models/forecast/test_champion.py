"""The load ahead: who speaks, how sure it is, and when nobody should listen."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.models.forecast import CANDIDATES, Forecast, Series, forecast, forecasts, regular
from homeostat.models.forecast.baselines import NAIVE, LastValue
from homeostat.models.forecast.daily_profile import Profile

MINUTE_S, HOUR_S, DAY_S = 60.0, 3600.0, 86_400.0

MONDAY_S = 1_600_041_600.0


def days_of_load(days: float, *, step_s: float = 600.0, noise: float = 0.1, seed: int = 1) -> tuple[Array, Array]:
    """High by day, low by night, half as much at the weekend; the noise stays for a while."""
    times_s = MONDAY_S + np.arange(0.0, days * DAY_S, step_s)
    hours = times_s % DAY_S / HOUR_S
    weekend = np.where((times_s - MONDAY_S) // DAY_S % 7 >= 5, 0.5, 1.0)
    shape = 1000.0 * (1.0 + 0.8 * np.sin((hours - 8.0) / 24.0 * 2 * np.pi)) * weekend
    drawn = np.random.default_rng(seed).normal(0.0, noise, len(times_s))
    for number in range(1, len(drawn)):
        drawn[number] = 0.8 * drawn[number - 1] + 0.6 * drawn[number]
    return times_s, shape * np.exp(drawn)


def history_of(days: float, horizon_s: float = HOUR_S, **details: float) -> Series:
    times_s, per_s = days_of_load(days, **details)  # type: ignore[arg-type]
    return regular(times_s, per_s, horizon_s=horizon_s)


def test_a_daily_load_is_forecast_better_than_by_its_last_value_and_it_says_so() -> None:
    prediction = forecast(history_of(21, DAY_S), DAY_S)
    assert prediction.usable
    assert prediction.champion not in NAIVE
    assert "× that of repeating the last value" in prediction.reason
    scores = {score.name: score.mase for score in prediction.scores}
    assert prediction.mase == min(scores.values()) < 0.7 * scores["seasonal naive"] < scores["last value"]
    assert prediction.origins >= 40
    assert prediction.season_s == DAY_S


def test_what_comes_lies_in_the_interval_about_as_often_as_promised() -> None:
    times_s, per_s = days_of_load(40, step_s=1800.0)
    inside = []
    for origin in range(15 * 48, 39 * 48, 29):
        history = regular(times_s[:origin], per_s[:origin], horizon_s=6 * HOUR_S)
        prediction = forecast(history, 6 * HOUR_S, candidates=[LastValue(), Profile()])
        came = per_s[origin : origin + len(prediction.values)]
        inside.append(np.mean((came >= prediction.values[:, 0]) & (came <= prediction.values[:, -1])))
        assert prediction.coverage == pytest.approx(0.8, abs=0.1)
    assert np.mean(inside) == pytest.approx(0.8, abs=0.08)


def test_an_interval_is_wide_where_the_load_is_high() -> None:
    prediction = forecast(history_of(21, DAY_S), DAY_S)
    width = prediction.column(0.9) - prediction.column(0.1)
    busy = prediction.column(0.5) > np.median(prediction.column(0.5))
    assert width[busy].mean() > 2 * width[~busy].mean()


@pytest.mark.parametrize("level", [0.0, 42.0])
def test_a_load_that_never_changes_needs_no_forecast(level: float) -> None:
    prediction = forecast(regular(np.arange(3000) * 60.0, np.full(3000, level), horizon_s=HOUR_S), HOUR_S)
    assert (prediction.champion, prediction.usable) == ("last value", False)
    assert "the load stays the same" in prediction.reason
    assert prediction.values == pytest.approx(np.full(prediction.values.shape, level))


def test_a_walk_that_nobody_can_foresee_is_not_usable() -> None:
    steps = np.random.default_rng(3).normal(0.0, 0.02, 4000)
    prediction = forecast(regular(np.arange(4000) * 60.0, 1000 * np.exp(np.cumsum(steps)), horizon_s=HOUR_S), HOUR_S)
    assert not prediction.usable
    assert prediction.reason.startswith("not usable")


def test_a_naive_one_that_is_as_good_speaks() -> None:
    times_s = np.arange(0.0, 10 * DAY_S, 600.0)
    prediction = forecast(regular(times_s, 100 + 50 * (times_s // HOUR_S % 24), horizon_s=DAY_S), DAY_S)
    assert (prediction.champion, prediction.usable) == ("seasonal naive", True)


def test_too_little_history_says_how_much_is_needed() -> None:
    prediction = forecast(history_of(0.1), 6 * HOUR_S)
    assert not prediction.usable
    assert prediction.reason == "not usable: a horizon of 6 h needs 14.7 h of history, but there is only 2.5 h"
    assert np.isfinite(prediction.column(0.5)).all()
    assert np.isnan(prediction.column(0.9)).all()
    assert forecast(regular(np.empty(0), np.empty(0), horizon_s=HOUR_S), HOUR_S).usable is False


def test_growing_history_never_takes_a_forecast_away() -> None:
    """Two days show a season, which needs some room to be tested; until then it goes on without."""
    has_forecast = [forecast(history_of(days), HOUR_S).origins > 0 for days in (0.5, 1.9, 2.0, 2.02, 2.1, 3.0)]
    assert all(has_forecast)


def test_a_shift_of_the_level_is_followed() -> None:
    times_s, per_s = days_of_load(28)
    shifted = np.where(times_s > times_s[-1] - 1.5 * DAY_S, 3.0, 1.0) * per_s
    before, after = (
        forecast(regular(times_s, values, horizon_s=6 * HOUR_S), 6 * HOUR_S).column(0.5).mean()
        for values in (per_s, shifted)
    )
    assert after == pytest.approx(3 * before, rel=0.25)


def test_a_spike_and_a_gap_hardly_move_it() -> None:
    times_s, per_s = days_of_load(28)
    plain = forecast(regular(times_s, per_s, horizon_s=6 * HOUR_S), 6 * HOUR_S).column(0.5)
    spiky = per_s.copy()
    spiky[-700:-694] *= 50
    holed = np.ones(len(times_s), dtype=bool)
    holed[-2000:-1800] = False
    holed[::7] = False
    for times, values in ((times_s, spiky), (times_s[holed], per_s[holed])):
        prediction = forecast(regular(times, values, horizon_s=6 * HOUR_S), 6 * HOUR_S)
        assert prediction.usable
        assert prediction.column(0.5) == pytest.approx(plain, rel=0.15)


def test_another_season_than_the_day_is_found() -> None:
    times_s = np.arange(0.0, 8 * HOUR_S, 10.0)
    noise = np.exp(np.random.default_rng(5).normal(0.0, 0.05, len(times_s)))
    load = 1000 * (1 + 0.7 * np.sin(times_s / HOUR_S * 2 * np.pi)) * noise
    prediction = forecast(regular(times_s, load, horizon_s=0.5 * HOUR_S), 0.5 * HOUR_S)
    assert prediction.season_s == pytest.approx(HOUR_S, rel=0.05)
    assert prediction.usable


def test_one_for_each_horizon_from_a_single_backtest() -> None:
    history = history_of(14, DAY_S)
    near, far = forecasts(history, [HOUR_S, DAY_S])
    assert (near.horizon_s, far.horizon_s) == (HOUR_S, DAY_S)
    assert near.mase < far.mase


def test_it_tells_the_rate_at_a_moment_and_the_highest_until_then() -> None:
    prediction = forecast(history_of(14, DAY_S), DAY_S, quantiles=(0.05, 0.95))
    assert prediction.quantiles == (0.05, 0.5, 0.95)
    assert prediction.at(HOUR_S) == prediction.column(0.5)[round(HOUR_S / prediction.step_s) - 1]
    assert prediction.at(0.0) == prediction.column(0.5)[0]
    assert prediction.at(99 * DAY_S) == prediction.column(0.5)[-1]
    assert prediction.highest(DAY_S, 0.95) == prediction.column(0.95).max() > prediction.at(DAY_S)
    with pytest.raises(ConfigError, match=r"no quantile 0\.9 "):
        prediction.at(HOUR_S, 0.9)


@dataclass(frozen=True)
class Oracle:
    """A plug-in: it knows the future, so it must win."""

    future: Series
    name: str = "oracle"

    def ahead(self, history: Series, steps: int) -> Array:
        return self.future.values[len(history.values) : len(history.values) + steps]


def test_a_plug_in_takes_part_and_gets_its_intervals() -> None:
    whole = history_of(15, 6 * HOUR_S)
    prediction = forecast(whole.until(14 * 144), 6 * HOUR_S, candidates=[*CANDIDATES, Oracle(whole)])
    assert prediction.champion == "oracle"
    assert prediction.mase == pytest.approx(0.0, abs=1e-9)


def test_the_same_history_gives_the_same_forecast() -> None:
    one, two = (forecast(history_of(9), HOUR_S) for _ in range(2))
    assert np.array_equal(one.values, two.values)
    assert (one.champion, one.reason, one.scores) == (two.champion, two.reason, two.scores)


loads = st.one_of(
    st.floats(-1e3, 1e6),
    st.sampled_from([0.0, float("nan"), float("inf"), float("-inf"), 1e300, -1.0]),
)


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0, 3e5), loads), max_size=300),
    st.floats(1.0, 1e5),
    st.floats(0.0, 1e9),
)
def test_whatever_was_recorded_it_answers(points: list[tuple[float, float]], horizon_s: float, start_s: float) -> None:
    times_s = np.array([start_s + time_s for time_s, _ in points])
    per_s = np.array([value for _, value in points])
    prediction = forecast(regular(times_s, per_s, horizon_s=horizon_s), horizon_s)
    check_sound(prediction)


@settings(max_examples=25, deadline=None)
@given(st.integers(0, 10_000), st.integers(60, 900), st.floats(0.0, 0.9))
def test_whatever_the_gaps_it_answers(seed: int, count: int, missing: float) -> None:
    drawn = np.random.default_rng(seed)
    per_s = drawn.lognormal(3.0, 1.0, count)
    per_s[drawn.random(count) < missing] = np.nan
    check_sound(forecast(regular(np.arange(count) * 600.0, per_s, horizon_s=HOUR_S), HOUR_S))


def check_sound(prediction: Forecast) -> None:
    finite_values = prediction.values[np.isfinite(prediction.values)]
    assert (finite_values >= 0).all()
    assert (np.diff(prediction.values, axis=1)[np.isfinite(np.diff(prediction.values, axis=1))] >= 0).all()
    assert prediction.reason
    assert not prediction.usable or (np.isfinite(prediction.values).all() and prediction.origins)
