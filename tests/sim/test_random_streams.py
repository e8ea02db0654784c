"""Random streams depend only on their seed and names, and noise has the mean, spread and correlation it should."""

from __future__ import annotations

import math

import numpy as np
import pytest

from homeostat.core.errors import ConfigError
from homeostat.sim.random_streams import Ar1, stream
from homeostat.sim.scenario.spec import Noise

NOISE = Noise(0.15, 0.7)


def test_a_stream_depends_on_its_seed_and_names_alone() -> None:
    assert stream(7, "service", "count").random(4).tolist() == stream(7, "service", "count").random(4).tolist()
    streams = stream(7, "a"), stream(7, "b"), stream(8, "a"), stream(7, "a", "b"), stream(7), stream(-7, "a")
    assert len({rng.random() for rng in streams}) == len(streams)


def test_noise_has_mean_one_and_the_asked_spread_and_correlation() -> None:
    noise = Ar1(NOISE, stream(3, "noise"), size=500)
    factors = np.array([noise.next() for _ in range(400)])
    logs = np.log(factors)
    assert factors.mean() == pytest.approx(1.0, abs=0.005)
    assert logs.std() == pytest.approx(0.15, rel=0.02)
    assert np.corrcoef(logs[1:].ravel(), logs[:-1].ravel())[0, 1] == pytest.approx(0.7, abs=0.01)


def test_without_noise_the_factors_are_one_and_the_stream_is_used_alike() -> None:
    quiet_rng, noisy_rng = stream(1, "x"), stream(1, "x")
    quiet, noisy = Ar1(Noise(), quiet_rng, 3), Ar1(NOISE, noisy_rng, 3)
    for _ in range(5):
        assert quiet.next().tolist() == [1.0, 1.0, 1.0]
        noisy.next()
    assert quiet_rng.random() == noisy_rng.random()


@pytest.mark.parametrize("noise", [Noise(sigma=-0.1), Noise(phi=1.0), Noise(sigma=math.nan)])
def test_impossible_noise_is_refused(noise: Noise) -> None:
    with pytest.raises(ConfigError, match="sigma must be 0 or more"):
        Ar1(noise, stream(1))
