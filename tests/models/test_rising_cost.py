"""Rows that cost more and more."""

from __future__ import annotations

import numpy as np
import pytest

from homeostat.core.observation import Array
from homeostat.models.rising_cost import rise_of_costs

FLAT = np.ones(30)


def rise(costs: Array, sizes: Array | None = None, sigma: float = 0.0) -> float:
    noise = np.exp(sigma * np.random.default_rng(1).standard_normal(len(costs)))
    rows = np.full(len(costs), 100.0) if sizes is None else sizes
    return rise_of_costs(costs * noise, rows, float(rows[-1]))


@pytest.mark.parametrize("batches", [6, 20, 150])
def test_a_steady_rise_is_found_however_long_it_takes(batches: int) -> None:
    costs = np.concatenate([FLAT, np.linspace(1.0, 3.0, batches)])
    assert rise(costs, sigma=0.03) == pytest.approx(3.0, rel=0.35)


@pytest.mark.parametrize("after", [2, 4, 6, 20])
def test_a_step_is_none(after: int) -> None:
    assert rise(np.concatenate([FLAT, np.full(after, 3.0)]), sigma=0.03) == 1.0


def test_noise_is_none() -> None:
    assert rise(np.ones(200), sigma=0.1) == 1.0


def test_a_row_of_a_smaller_batch_is_dearer_without_a_rise() -> None:
    sizes = np.linspace(140.0, 100.0, 30)
    assert rise(140.0 / sizes, sizes) == 1.0
