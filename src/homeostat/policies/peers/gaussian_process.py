"""The surrogate of ContTune: a Gaussian process without a mean and without noise, with a squared-exponential kernel."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from homeostat.core.observation import Array

# The length scale that ContTune's optimiser starts with. It stays where one observation cannot tell.
FIRST_LENGTH = 2.5
# The optimiser goes downhill in steps of this factor. The original uses L-BFGS-B, which goes downhill, too.
_STEP, _MOST_STEPS = 1.1, 40
# Added to the diagonal, as a share of the variance, so that the kernel can be inverted. The original's is as small:
# with more, the process would no longer pass through the observations.
_JITTER = 1e-14
_SMALLEST = 1e-300
# A smaller gain of the likelihood is none.
_FLAT = 1e-9


@dataclass(frozen=True, slots=True)
class Process:
    """A process that passes through the observations at `places`."""

    places: Array
    weights: Array
    length: float

    def mean(self, places: Sequence[float] | Array) -> Array:
        return np.asarray(_kernel(np.asarray(places, dtype=np.float64), self.places, self.length) @ self.weights)


def fitted(places: Sequence[float], values: Sequence[float]) -> Process:
    """The process with the length scale that is the most likely one nearby. The best variance has a closed form."""
    at, y = np.array(places, dtype=np.float64), np.array(values, dtype=np.float64)
    length, loss = FIRST_LENGTH, _loss(at, y, FIRST_LENGTH)
    for factor in (_STEP, 1.0 / _STEP):
        for _ in range(_MOST_STEPS):
            next_loss = _loss(at, y, length * factor)
            if not next_loss < loss - _FLAT:
                break
            length, loss = length * factor, next_loss
    return Process(at, np.asarray(np.linalg.solve(_regular(at, length), y), dtype=np.float64), length)


def _loss(at: Array, y: Array, length: float) -> float:
    """The negative log likelihood without constants; infinite if the kernel cannot be inverted."""
    try:
        factor = np.linalg.cholesky(_regular(at, length))
    except np.linalg.LinAlgError:
        return math.inf
    whitened = np.linalg.solve(factor, y)
    variance = max(float(whitened @ whitened) / len(y), _SMALLEST)
    return 0.5 * len(y) * math.log(variance) + float(np.log(np.diag(factor)).sum())


def _regular(at: Array, length: float) -> Array:
    return _kernel(at, at, length) + _JITTER * np.eye(len(at))


def _kernel(first: Array, second: Array, length: float) -> Array:
    return np.asarray(np.exp(-0.5 * ((first[:, None] - second[None, :]) / length) ** 2))
