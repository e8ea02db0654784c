"""Whether the load rises: clearly, and not by a jump."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.observation import Array
from homeostat.models.trend import rise_per_s

AT_S = 4.0 * np.arange(12.0)


def noisy(per_s: Array, seed: int = 1, sigma: float = 0.01) -> Array:
    return np.asarray(per_s * np.exp(np.random.default_rng(seed).normal(0.0, sigma, len(per_s))))


def test_a_load_that_grows_step_by_step_rises() -> None:
    rise = rise_per_s(AT_S, noisy(1_000.0 * np.exp(0.007 * AT_S)))
    assert rise == pytest.approx(0.007, rel=0.35)


@pytest.mark.parametrize("ago", range(1, 12))
def test_a_load_that_has_jumped_does_not_rise(ago: int) -> None:
    per_s = np.where(np.arange(12) < 12 - ago, 1_000.0, 2_000.0)
    assert rise_per_s(AT_S, per_s) == 0.0


def test_a_load_that_falls_or_was_hardly_seen_does_not_rise() -> None:
    assert rise_per_s(AT_S, 1_000.0 * np.exp(-0.007 * AT_S)) == 0.0
    assert rise_per_s(AT_S[:4], 1_000.0 * np.exp(0.007 * AT_S[:4])) == 0.0
    assert rise_per_s(np.empty(0), np.empty(0)) == 0.0


def test_what_is_unknown_or_nothing_is_left_out() -> None:
    per_s = 1_000.0 * np.exp(0.007 * AT_S)
    per_s[[3, 7]] = math.nan, 0.0
    assert rise_per_s(AT_S, per_s) == pytest.approx(0.007)


@given(st.integers(0, 10_000))
def test_noise_is_hardly_ever_taken_for_a_rise_worth_mentioning(seed: int) -> None:
    assert rise_per_s(AT_S, noisy(np.full(12, 1_000.0), seed, 0.02)) < 0.007
