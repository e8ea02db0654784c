"""Noise: how much slower or faster than specified a micro-batch is."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from homeostat.core.observation import Array
from homeostat.sim.random_streams import Ar1, stream
from homeostat.sim.scenario.spec import MicrobatchSpec, Noise

# The driver's phases vary less than the tasks: by this share of the tasks' noise. Chosen by hand.
DRIVER_SHARE = 0.3
# Calibration replays the same batches with the same seeds many times, so drawn numbers are worth caching.
CACHED_DRAWS = 50_000


class Slowness:
    """Factors with mean 1. They depend on a batch's number, not on how earlier batches went."""

    def __init__(self, noise: Noise, engine: MicrobatchSpec, seed: int) -> None:
        self._sigma = noise.sigma
        self._share, self._factor = engine.straggler_share, engine.straggler_factor
        self._batches = Ar1(noise, stream(seed, "service"))
        self._seed = seed
        self._level = float(_log_normal(stream(seed, "run").standard_normal(1), engine.run_sigma)[0])

    def next_batch(self) -> float:
        """One factor for all tasks of a batch: correlated from batch to batch, around the level of the run."""
        return self._level * float(self._batches.next()[0])

    def driver(self, batch: int) -> float:
        return float(_log_normal(_normal(1, self._seed, "driver", str(batch)), DRIVER_SHARE * self._sigma)[0])

    def tasks(self, component: str, batch: int, tasks: int) -> Array:
        factors = _log_normal(_normal(tasks, self._seed, component, "tasks", str(batch)), self._sigma)
        if self._share > 0:
            draws = stream(self._seed, component, "stragglers", str(batch)).random(tasks)
            factors[draws < self._share] *= self._factor
        return factors

    def attempts(self, component: str, batch: int, restarts: int) -> np.random.Generator:
        """The random numbers that decide which attempts at the tasks of a stage fail."""
        return stream(self._seed, component, "attempts", str(batch), str(restarts))


@lru_cache(maxsize=CACHED_DRAWS)
def _normal(count: int, seed: int, *names: str) -> Array:
    draws = stream(seed, *names).standard_normal(count)
    draws.setflags(write=False)
    return draws


def _log_normal(normal: Array, sigma: float) -> Array:
    factors: Array = np.exp(sigma * normal - sigma**2 / 2)
    return factors
