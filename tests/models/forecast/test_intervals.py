"""Intervals from errors, however few of them are known."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.observation import NAN
from homeostat.models.forecast.intervals import Errors


def test_errors_that_are_known_for_some_steps_speak_for_the_others() -> None:
    forecasts = np.full((12, 40), 100.0)
    actual = np.full((12, 40), NAN)
    actual[:, :3] = 100 + np.linspace(-10, 10, 12)[:, np.newaxis]
    off = Errors(forecasts, actual)
    values = off.quantiles(np.full(40, 100.0), (0.1, 0.9))
    assert np.isfinite(values).all()
    assert values[-1] == pytest.approx(values[2])
    assert 0.5 < off.coverage(forecasts, actual, 0.1, 0.9) <= 1.0


def test_where_one_stretch_alone_is_known_nothing_can_be_said_about_the_coverage() -> None:
    forecasts, actual = np.full((16, 4), 100.0), np.full((16, 4), NAN)
    actual[0] = 105.0
    assert np.isnan(Errors(forecasts, actual).coverage(forecasts, actual, 0.1, 0.9))


def test_the_interval_grows_with_the_load_as_the_errors_did() -> None:
    drawn = np.random.default_rng(1)
    forecasts = drawn.uniform(10.0, 1000.0, (60, 20))
    alike, relative = drawn.normal(0.0, 5.0, forecasts.shape), drawn.normal(0.0, 0.1, forecasts.shape) * forecasts
    widths = [
        np.diff(
            Errors(forecasts, forecasts + errors).quantiles(np.array([100.0, 900.0]).repeat(10), (0.1, 0.9)), axis=1
        )
        for errors in (alike, relative)
    ]
    assert widths[0][-1] == pytest.approx(widths[0][0], rel=0.3)
    assert widths[1][-1] > 4 * widths[1][0]
