"""Noise depends on the seed and on the number of the batch alone."""

from __future__ import annotations

import pytest

from homeostat.sim.microbatch.slowness import Slowness
from homeostat.sim.scenario.spec import MicrobatchSpec, Noise


def test_the_noise_of_a_batch_does_not_depend_on_earlier_batches() -> None:
    one, other = (Slowness(Noise(0.2), MicrobatchSpec(), seed=3) for _ in range(2))
    one.tasks("count", 0, 8)
    assert one.tasks("count", 5, 8).tolist() == other.tasks("count", 5, 8).tolist()
    assert one.driver(5) == other.driver(5)


def test_factors_have_mean_one_and_without_noise_they_are_one() -> None:
    assert Slowness(Noise(0.2), MicrobatchSpec(), 1).tasks("count", 0, 20_000).mean() == pytest.approx(1.0, abs=0.01)
    assert Slowness(Noise(), MicrobatchSpec(), 1).tasks("count", 0, 3).tolist() == [1.0] * 3
