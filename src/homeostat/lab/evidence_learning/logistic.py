"""Logistic regression with weights that are shrunk towards given ones, for a few features and many examples."""

from __future__ import annotations

import numpy as np

from homeostat.core.observation import Array

# Newton's method ends when no weight moves by more than this, or after this many steps. A handful is usual.
_ENOUGH, _MOST_STEPS = 1e-6, 60
# The odds of one example are bounded, so that the exponential stays finite.
_LARGEST = 30.0


def probabilities(rows: Array, weights: Array) -> Array:
    """The probability of each row. The first weight is the intercept."""
    total = np.clip(weights[0] + rows @ weights[1:], -_LARGEST, _LARGEST)
    return np.asarray(1.0 / (1.0 + np.exp(-total)))


def fit(rows: Array, right: Array, prior: Array, precision: float) -> Array:
    """The weights that make the examples most likely, with a normal prior around `prior`.

    A larger `precision` keeps the weights closer to `prior`. Without examples they equal it.
    """
    design = np.column_stack([np.ones(len(rows)), rows])
    weights = np.array(prior, dtype=float)
    for _ in range(_MOST_STEPS):
        p = probabilities(rows, weights)
        slope = design.T @ (right - p) - precision * (weights - prior)
        curve = (design * (p * (1.0 - p))[:, None]).T @ design + precision * np.eye(len(weights))
        move = np.linalg.solve(curve, slope)
        # A full step can overshoot where the examples are nearly separable.
        weights = weights + move * min(1.0, 2.0 / max(float(np.abs(move).max()), 1e-12))
        if float(np.abs(move).max()) < _ENOUGH:
            break
    return weights


def log_loss(p: Array, right: Array) -> float:
    """The mean of −ln(the probability of the true answer). Smaller is better; a coin toss has ln 2."""
    bounded = np.clip(p, 1e-6, 1.0 - 1e-6)
    return float(-np.mean(right * np.log(bounded) + (1.0 - right) * np.log(1.0 - bounded)))
