"""Fits the cost of a task for many assumed slowings at once, to see which of them explains the measurements best.

Normal equations are exact enough to compare, and much faster than a least-squares solve for each slowing.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from numpy.typing import NDArray

from homeostat.core.observation import Array

BoolArray = NDArray[np.bool_]
# From the median absolute deviation to the standard deviation of a normal distribution.
MAD_TO_SIGMA = 1.4826
# Residuals beyond this many standard deviations count less, as in Huber's estimator. A choice.
OUTLIER_SIGMAS = 2.5
# Added to the diagonal of the normal equations, whose columns have length 1: parallel columns then get equal
# coefficients. Large enough to keep the solution finite, and too small to change other solutions. A choice.
_RIDGE = 1e-13


@dataclass(frozen=True, slots=True)
class Trials:
    """One line per assumed slowing, one column per measurement. `parts` are multiplied by the coefficients that are
    fitted, and `given_s` is the part of a task's time that is known beforehand."""

    parts: Sequence[Array]
    given_s: Array | float
    seconds: Array
    weight: Array

    def errors(self, rounds: int) -> Array:
        """The weighted sum of |ln(measured ÷ fitted)| for each slowing, after this many rounds of reweighting."""
        values = self.seconds - self.given_s
        columns = np.stack([np.broadcast_to(part, self.parts[-1].shape) for part in self.parts], axis=1)
        values = np.broadcast_to(values, self.parts[-1].shape)
        certainty = np.sqrt(self.weight) / values
        for number in range(rounds):
            coefficients = _not_negative(columns * certainty[:, None, :], values * certainty)
            plain = (coefficients[:, None, :] @ columns)[:, 0, :]
            if number < rounds - 1:
                certainty = self._reweighted(values, plain)
        expected = plain + self.given_s
        return np.asarray(np.abs(np.log(self.seconds / np.maximum(expected, 1e-12))) @ self.weight)

    def _reweighted(self, values: Array, plain: Array) -> Array:
        fitted = np.maximum(plain, 1e-3 * values)
        errors = np.abs(values / fitted - 1.0)
        usual = np.maximum(MAD_TO_SIGMA * _medians(errors), 1e-6)[:, None]
        share = np.minimum(1.0, OUTLIER_SIGMAS * usual / np.maximum(errors, 1e-12))
        return np.asarray(np.sqrt(self.weight * share) / fitted)


def _medians(lines: Array) -> Array:
    count = lines.shape[1]
    ordered = np.sort(lines, axis=1)  # several times faster than np.partition around two places
    return np.asarray(0.5 * (ordered[:, (count - 1) // 2] + ordered[:, count // 2]))


def _not_negative(columns: Array, values: Array) -> Array:
    """Non-negative least squares, line by line, by trying every subset of the columns, of which there are few."""
    lines, count, _ = columns.shape
    squares = np.concatenate([columns @ columns[:, each, :, None] for each in range(count)], axis=2)
    scale = np.sqrt(np.maximum(np.diagonal(squares, axis1=1, axis2=2), 1e-300))
    squares = squares / (scale[:, :, None] * scale[:, None, :])
    products = (columns @ values[:, :, None])[:, :, 0] / scale
    # One system for each subset and line, in which the coefficients of the other columns are 0.
    chosen = _subsets(count)[:, None, :]
    systems = np.where(chosen[:, :, :, None] & chosen[:, :, None, :], squares, np.eye(count)) + _RIDGE * np.eye(count)
    solutions = np.linalg.solve(systems, np.where(chosen, products, 0.0)[:, :, :, None])[:, :, :, 0]
    # How much each subset reduces the squared error.
    gained = np.where((solutions >= 0).all(axis=2), (solutions * products).sum(axis=2), -np.inf)
    return np.asarray(solutions[gained.argmax(axis=0), np.arange(lines)] / scale)


@cache
def _subsets(count: int) -> BoolArray:
    """Which columns are in each subset, from all columns to none."""
    return np.array(sorted(product((True, False), repeat=count), key=sum, reverse=True))
