"""Candidates are tested on the past without looking ahead, and one that fails is left out."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from homeostat.core.observation import Array
from homeostat.models.forecast import CANDIDATES, Forecaster, Series, forecast, regular
from homeostat.models.forecast.baselines import roll

HOUR_S, DAY_S = 3600.0, 86_400.0
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


class Broken:
    name = "broken"

    def ahead(self, history: Series, steps: int) -> Array:
        raise ValueError("no idea")


class TooShort:
    name = "too short"

    def ahead(self, history: Series, steps: int) -> Array:
        return np.ones(1)


def test_a_plug_in_that_fails_is_left_out_and_reported() -> None:
    prediction = forecast(history_of(9), HOUR_S, candidates=[Broken(), TooShort()])
    assert prediction.champion == "last value"
    broken, too_short = prediction.repairs
    assert broken == "broken failed and was skipped: ValueError: no idea"
    assert too_short.startswith("too short failed and was skipped: ValueError")


def test_a_gap_where_it_would_be_tested_is_reported() -> None:
    times_s, per_s = days_of_load(10)
    kept = (times_s < times_s[0] + 6 * DAY_S) | (times_s >= times_s[-1])
    prediction = forecast(regular(times_s[kept], per_s[kept], horizon_s=HOUR_S), HOUR_S)
    missing = "the newest part of the history, which is needed to test the forecast, is missing"
    assert prediction.reason == f"not usable: {missing}"


@pytest.mark.parametrize("candidate", CANDIDATES, ids=lambda each: each.name)
def test_no_candidate_looks_ahead(candidate: Forecaster) -> None:
    """Whatever comes after an origin, it says the same; and alone at that moment, it says the same again."""
    history = history_of(20)
    origins = [16 * 144, 17 * 144 + 77, 19 * 144]
    forecasts = roll(candidate, history, origins, 300)
    for number, origin in enumerate(origins):
        later = history.values.copy()
        later[origin:] = 1e6
        poisoned = roll(candidate, replace(history, values=later), origins, 300)
        assert poisoned[number] == pytest.approx(forecasts[number])
