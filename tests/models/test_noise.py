"""How much a series varies by itself, and whether it has really changed."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from homeostat.core.observation import NAN, Array
from homeostat.models.noise import Noise, cusum, fit, since_onset, whiten

SIGMA, PHI = 0.15, 0.7
COUNT = 400
SEEDS = range(20)


def ar1(seed: int, sigma: float = SIGMA, phi: float = PHI, count: int = COUNT) -> Array:
    fresh = np.random.default_rng(seed).normal(0.0, sigma * math.sqrt(1.0 - phi**2), count)
    values = np.empty(count)
    values[0] = fresh[0] / math.sqrt(1.0 - phi**2)
    for i in range(1, count):
        values[i] = phi * values[i - 1] + fresh[i]
    return values


def as_it_is(values: Array) -> Array:
    return values


def with_a_jump(values: Array) -> Array:
    return values + np.where(np.arange(len(values)) < len(values) // 2, 0.0, 1.0)


def with_a_trend(values: Array) -> Array:
    return values + np.linspace(0.0, 2.0, len(values))


def with_spikes(values: Array) -> Array:
    return values + np.where(np.arange(len(values)) % 50 == 7, 2.0, 0.0)


@pytest.mark.parametrize("distorted", [as_it_is, with_a_jump, with_a_trend])
def test_noise_is_recovered_whatever_its_level_does(distorted: Callable[[Array], Array]) -> None:
    fits = [fit(distorted(ar1(seed))) for seed in SEEDS]

    sigmas, phis = np.array([noise.sigma for noise in fits]), np.array([noise.phi for noise in fits])
    assert np.median(sigmas) == pytest.approx(SIGMA, rel=0.1)
    assert np.median(phis) == pytest.approx(PHI, abs=0.05)
    assert np.abs(np.log(sigmas / SIGMA)).max() < math.log(1.7)
    assert np.abs(phis - PHI).max() < 0.25


def test_spikes_do_not_pass_for_noise() -> None:
    """They take some of the correlation away, but what is new in each value is still known."""
    fits = [fit(with_spikes(ar1(seed))) for seed in SEEDS]

    assert with_spikes(ar1(0)).std() > 2.0 * SIGMA
    assert np.median([noise.sigma for noise in fits]) == pytest.approx(SIGMA, rel=0.3)
    assert np.median([noise.innovation for noise in fits]) == pytest.approx(Noise(SIGMA, PHI).innovation, rel=0.1)


def test_white_noise_is_distinguished_from_correlated() -> None:
    white = np.median([fit(ar1(seed, phi=0.0)).phi for seed in SEEDS])
    correlated = np.median([fit(ar1(seed, phi=0.7)).phi for seed in SEEDS])

    assert white < 0.2
    assert correlated > 0.6


def test_missing_values_are_left_out_of_the_fit() -> None:
    values = ar1(1)
    holes = np.insert(values, [0, 50, 120, 400], NAN)

    assert fit(holes) == fit(values)


@pytest.mark.parametrize("values", [[], [1.0], [1.0, 2.0], [3.0] * 50, [NAN] * 9])
def test_no_noise_where_none_was_seen(values: list[float]) -> None:
    assert fit(np.array(values)).sigma == 0.0


def test_little_data_draws_the_correlation_to_a_typical_one() -> None:
    short = [abs(fit(ar1(seed, phi=0.0, count=6)).phi - 0.5) for seed in SEEDS]
    long = [abs(fit(ar1(seed, phi=0.0, count=2000)).phi - 0.5) for seed in SEEDS]

    assert max(short) < min(long)


def test_whitening_leaves_independent_values_of_unit_size() -> None:
    values = ar1(3, count=4000)

    white = whiten(values, Noise(SIGMA, PHI), floor=0.01)

    assert np.corrcoef(values[1:], values[:-1])[0, 1] > 0.6
    assert abs(np.corrcoef(white[1:], white[:-1])[0, 1]) < 0.05
    assert white.std() == pytest.approx(1.0, rel=0.05)


def test_whitening_bounds_what_a_single_value_can_say() -> None:
    white = whiten(np.array([0.0, 1000.0, 0.0]), Noise(SIGMA, PHI), floor=0.05, clip=6.0)

    assert white.max() == 6.0
    assert white.min() == -6.0


def test_without_noise_the_floor_is_the_unit() -> None:
    white = whiten(np.array([0.1, 0.1]), Noise(0.0, 0.0), floor=0.05)

    assert white == pytest.approx([2.0, 2.0])


@given(st.lists(st.floats(-6.0, 6.0), max_size=60), st.floats(0.0, 2.0))
def test_cusum_is_its_recursive_definition(z: list[float], slack: float) -> None:
    expected, total = [], 0.0
    for value in z:
        total = max(0.0, total + value - slack)
        expected.append(total)

    assert cusum(np.array(z), slack) == pytest.approx(expected, abs=1e-9)


def test_onset_is_where_the_present_excursion_began() -> None:
    logs = np.array([0.0] * 5 + [1.0] * 4)
    sums = np.array([0.0, 0.5, 0.0, 0.4, 0.0, 1.0, 2.0, 3.0, 4.0])

    assert since_onset(logs, sums, Noise(0.1, 0.5), least=3) == 4


def test_all_counts_if_the_series_was_never_quiet() -> None:
    assert since_onset(np.ones(6), np.arange(1.0, 7.0), Noise(0.1, 0.5), least=3) == 6


def test_nothing_counts_in_a_quiet_series() -> None:
    assert since_onset(np.zeros(6), np.zeros(6), Noise(0.1, 0.5), least=3) == 0


def test_only_the_latest_count_while_the_series_still_moves() -> None:
    sums = np.arange(1.0, 11.0)
    settled, moving = np.ones(10), np.array([0.5] * 7 + [2.0] * 3)

    assert since_onset(settled, sums, Noise(0.1, 0.5), least=3) == 10
    assert since_onset(moving, sums, Noise(0.1, 0.5), least=3) == 3
    assert since_onset(moving, sums, Noise(2.0, 0.5), least=3) == 10
