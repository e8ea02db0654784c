"""Random numbers: one stream per component, fault and workload, so that every policy runs with the same noise."""

from __future__ import annotations

from zlib import crc32

import numpy as np

from homeostat.core.errors import ConfigError
from homeostat.core.observation import Array
from homeostat.sim.scenario.spec import Noise


def stream(seed: int, *names: str) -> np.random.Generator:
    """A separate generator for these names: the same arguments give the same numbers."""
    key = tuple(crc32(name.encode()) for name in names)
    return np.random.Generator(np.random.PCG64(np.random.SeedSequence(seed % 2**64, spawn_key=key)))


class Ar1:
    """Log-normal factors with mean 1, correlated from one to the next.

    Without noise the factors are exactly 1, and as many random numbers are drawn as with noise.
    """

    __slots__ = ("_fresh", "_keep", "_offset", "_rng", "_size", "_x")

    def __init__(self, noise: Noise, rng: np.random.Generator, size: int = 1) -> None:
        if not noise.sigma >= 0 or not abs(noise.phi) < 1:
            raise ConfigError(
                f"impossible noise: sigma = {noise.sigma:g}, phi = {noise.phi:g}",
                fix="sigma must be 0 or more, and phi between -1 and 1",
            )
        self._rng = rng
        self._size = size
        self._keep = noise.phi
        self._fresh = noise.sigma * (1 - noise.phi**2) ** 0.5
        self._offset = noise.sigma**2 / 2
        self._x: Array = noise.sigma * rng.standard_normal(size)

    def next(self) -> Array:
        factors: Array = np.exp(self._x - self._offset)
        self._x = self._keep * self._x + self._fresh * self._rng.standard_normal(self._size)
        return factors
