"""The probabilities that diagnosers give to causes.

The arbiter multiplies the benefit of an action by them. Each is a choice: a higher value makes the loop act sooner on
that kind of evidence, a lower one makes it wait for more.
"""

from __future__ import annotations

import math

# Nothing points to the cause. It is not zero, because a sensor may have missed it. Choice.
NO_SIGN = 0.05
# The cause could be true, but the metric that would show it is missing. Below `likely`, so it is not named. Choice.
NOT_MEASURED = 0.3
# As likely as not.
EVEN_ODDS = 0.5
# The measurements fit the cause, but they also fit a harmless reason. Choice.
FITS = 0.7
# Nothing else explains the measurements. Choice.
BY_ELIMINATION = 0.75
# A measurement shows the effect, but not what made it. Choice.
EFFECT_SHOWN = 0.8
# A detector that looks for this cause only has found it. Choice.
SHOWN = 0.9
# The engine itself reports the cause. It is not one, because a report can be stale. Choice.
REPORTED = 0.95
# From even odds to `REPORTED`, or down to `NO_SIGN`.
_SWING = 0.45


def sureness(value: float, middle: float, width: float) -> float:
    """The probability that a measured value gives to a cause: 0.05 … 0.95, one half at `middle`.

    A smaller `width` makes it jump at `middle`; a larger one lets it rise slowly.
    """
    return EVEN_ODDS + _SWING * math.tanh((value - middle) / width)
