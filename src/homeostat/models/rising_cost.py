"""Whether a row costs a component more and more time: a steady rise, not a step."""

from __future__ import annotations

import math

import numpy as np

from homeostat.core.observation import Array

# The numbers of latest batches that are examined: a recent rise shows in few, a slow one only in many. With fewer than
# the first number, a step is easily mistaken for a rise. Choices.
LONGEST_SPAN = 192
_SPANS = (6, 12, 24, 48, 96, LONGEST_SPAN)
# The factor by which the cost must have grown. Smaller growth is reported once it has lasted longer. A choice.
_RISEN = 1.3
_RISEN_LN = math.log(_RISEN)
# For the logarithm of the costs, the largest ratio of the variance that a straight line leaves unexplained to the
# variance that the best step leaves unexplained. For a straight rise, a step leaves a quarter and a line nothing; for
# noise, both leave most of it. A choice.
_STRAIGHTER = 0.5
# An earlier batch with this many times the present rows is not compared, because fixed costs make a row of a smaller
# batch more expensive. Below this ratio, the number of rows is taken into account. A choice.
_SIMILAR_ROWS = 1.5


def rise_of_costs(costs: Array, sizes: Array, rows: float) -> float:
    """The cost of a row in the last of the batches ÷ its cost in the first; 1 without a rise.

    `costs` and `sizes` (in rows) belong to the latest batches, in order, and `rows` is the size of the present batch.
    """
    usable = np.isfinite(costs) & (costs > 0) & (sizes <= rows * _SIMILAR_ROWS)
    costs_ln, sizes = np.log(costs[usable]), sizes[usable]
    if len(costs_ln) < _SPANS[0]:
        return 1.0
    spans = {min(span, len(costs_ln)) for span in _SPANS}
    return max(_rise(costs_ln[-span:], sizes[-span:], rows) for span in spans)


def _rise(costs_ln: Array, sizes: Array, rows: float) -> float:
    count = len(costs_ln)
    places = np.arange(count) - (count - 1) / 2
    slope = float(places @ costs_ln) / (count * (count**2 - 1) / 12)  # least squares; Σ places² has a closed form
    risen_ln = slope * (count - 1)
    # If an earlier batch was larger, rows are more expensive now even without a rise.
    if risen_ln < _RISEN_LN or risen_ln < math.log(_RISEN * max(1.0, float(sizes.max()) / max(rows, 1.0))):
        return 1.0
    unexplained = float(np.sum((costs_ln - costs_ln.mean() - slope * places) ** 2))
    return math.exp(risen_ln) if unexplained <= _STRAIGHTER * _unexplained_by_a_step(costs_ln) else 1.0


def _unexplained_by_a_step(values: Array) -> float:
    """The sum of squares that remains if the values are cut at the best place into two parts, each with its mean."""
    centred = values - values.mean()
    counts = np.arange(1, len(values))
    sums = np.cumsum(centred)[:-1]
    gained = sums**2 * (1.0 / counts + 1.0 / (len(values) - counts))
    return float(np.sum(centred**2) - gained.max())
