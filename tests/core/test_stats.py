"""Robust statistics agree with numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest

from homeostat.core.stats import median, quantile, spread


@pytest.mark.parametrize("count", [1, 2, 3, 8, 101])
def test_median_and_quantile_agree_with_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)

    assert median(values) == pytest.approx(np.median(values))
    assert quantile(np.sort(values), 0.9) == pytest.approx(np.quantile(values, 0.9))


def test_the_median_of_nothing_is_unknown() -> None:
    assert math.isnan(median(np.empty(0)))


def test_the_spread_is_the_standard_deviation_of_normal_noise_and_ignores_a_spike() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, 20_000)

    assert spread(values) == pytest.approx(2.0, rel=0.03)
    assert spread(np.append(values, 1e9)) == pytest.approx(spread(values), rel=0.01)
