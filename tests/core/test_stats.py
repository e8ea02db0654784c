"""Robust statistics agree with numpy's."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.stats import filled, median, numpy_quantile, quantile, spread


@pytest.mark.parametrize("count", [1, 2, 3, 8, 101])
def test_median_and_quantile_agree_with_numpy(count: int) -> None:
    values = np.random.default_rng(count).normal(size=count)

    assert median(values) == pytest.approx(np.median(values))
    assert quantile(np.sort(values), 0.9) == pytest.approx(np.quantile(values, 0.9))


@given(values=st.lists(st.floats(-1e6, 1e6), min_size=1), share=st.floats(0.0, 1.0))
def test_the_quantile_of_numpy_is_reproduced_to_the_bit(values: list[float], share: float) -> None:
    assert numpy_quantile(np.sort(values), share) == np.quantile(values, share)


def test_the_median_of_nothing_is_unknown() -> None:
    assert math.isnan(median(np.empty(0)))


def test_the_spread_is_the_standard_deviation_of_normal_noise_and_ignores_a_spike() -> None:
    values = np.random.default_rng(1).normal(5.0, 2.0, 20_000)

    assert spread(values) == pytest.approx(2.0, rel=0.03)
    assert spread(np.append(values, 1e9)) == pytest.approx(spread(values), rel=0.01)


def test_only_unknown_values_are_filled() -> None:
    assert filled(np.array([1.0, math.nan, math.inf, -math.inf]), 7.0).tolist() == [1.0, 7.0, math.inf, -math.inf]
