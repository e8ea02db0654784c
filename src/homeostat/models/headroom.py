"""Headroom by risk: the factor by which the load may grow before another change could take effect.

The growth is measured on the application's own arrivals: the highest of the next observations ÷ the level before them.
The samples are recent moments with similar fluctuations, and the same time of earlier days. While there is little
history, the usual growth in recorded traffic is used instead. The cost of a violation decides which quantile to plan
for: one more instance is worth its price as long as the probability of a violation without it, times that cost, is
higher (the newsvendor problem).
"""

from __future__ import annotations

import math

import numpy as np

from homeostat.core.observation import Array
from homeostat.core.stats import median
from homeostat.core.traffic import MINUTE_S
from homeostat.core.view import View

# The load at a given time is the mean of this many observations, as in the planning of sizes.
_LEVEL_OVER = 6
# The growth is planned over the time of this many changes: an action must suffice until the one after it could help.
_CHANGES_AHEAD = 2.0
# Observations until a change is decided. More plans for more growth. A choice.
_OBSERVATIONS_TO_DECIDE = 2.0
# Points of the usual growth within `_PRIOR_OVER_S`: (share of the time, ln of the growth). Values between them are
# interpolated. Set by hand near the quantiles of six recorded traces with noise of 3 %, without the tail of the most
# bursty one. The growth increases with the square root of the time. Not checked on other traces.
_PRIOR_GROWTH = ((0.0, -0.05), (0.5, 0.045), (0.9, 0.15), (0.95, 0.2), (0.99, 0.35), (1.0, 0.5))
_PRIOR_OVER_S = 100.0
# How many observations the prior counts for. With more, an application's own history counts later. A choice.
_PRIOR_OBSERVATIONS = 60.0
# The prior is represented by this many values. A choice.
_PRIOR_VALUES = 200
# The number of observations that show how restless the load is, and the width (ln) of the weight of moments that were
# more or less restless. A narrower weight follows bursts sooner, but leaves fewer samples. Choices.
_RESTLESS_OVER, _RESTLESS_WIDTH = 12, 0.7
# Minutes of earlier days count as this many observations if their time of day is this close to the time that is planned
# for. The other minutes of the history count less: they show how bursty the load is. Choices.
_TIME_OF_DAY_S, _MINUTE_WEIGHT, _OTHER_MINUTE_WEIGHT = 3600.0, 3.0, 0.5
_DAY_MINUTES = 1440
# If less arrives than this, growth cannot be measured.
_SMALLEST_PER_S = 1e-6
# A steady load has this much restlessness, so that moments without noise can be compared.
_LEAST_RESTLESS = 1e-3
# The time after a moment in which the next growth is searched for, and the least history that must follow a moment,
# both in minutes; and the largest number of moments that are examined. Choices.
_LONGEST_LOOK, _LEAST_LOOK, _MOST_STARTS = 720, 30, 300
# The usual drift of the logarithm of a load in a minute, as in a random walk, and how many moments this prior counts
# for. Choices, not fitted to any trace.
_USUAL_DRIFT, _PRIOR_STARTS = 0.03, 30.0


def growth(view: View) -> float:
    """Return the factor by which the load may grow, at least 1. It is 1 if the policy does not plan by risk."""
    return view.once("growth", _growth) if view.violation_cost > 0 else 1.0


def cheapest_growth(growths: Array, weights: Array, violation_cost: float) -> float:
    """Return the ln of the factor, at least 0, for which the headroom and the expected violations cost least together.

    `growths` are samples of ln(growth). `violation_cost` is what a second of violation costs, in seconds of all
    instances. A factor of 1.2 costs a fifth more instances; the load is in violation while it has grown by more.

    >>> round(cheapest_growth(np.array([0.0, 0.1, 0.5]), np.array([0.90, 0.08, 0.02]), 20.0), 3)
    0.1
    """
    order = np.argsort(growths, kind="stable")
    candidates = np.maximum(np.concatenate([[0.0], growths[order]]), 0.0)
    below = np.concatenate([[0.0], np.cumsum(weights[order])])
    # Without headroom, every sample that grows at all is a violation.
    below[0] = float(weights[growths <= 0.0].sum())
    costs = np.exp(candidates) + violation_cost * (1.0 - below / below[-1])
    return float(candidates[int(np.argmin(costs))])


def _growth(view: View) -> float:
    rates = view.numbers.flow("arrival_per_s", len(view.history))
    spans_s = view.numbers.flow("span_s", len(view.history))
    is_known = np.isfinite(rates) & (rates > _SMALLEST_PER_S) & (spans_s > 0)
    logs, spans_s = np.log(rates[is_known]), spans_s[is_known]
    span_s = median(spans_s) if len(spans_s) else _PRIOR_OVER_S / _LEVEL_OVER
    ahead_s = lead_s(view, span_s)
    recent, recent_weight = _recent_growth(logs, max(1, math.ceil(ahead_s / span_s)))
    earlier, earlier_weight = _earlier_growth(view, ahead_s)
    prior = _prior_growth(ahead_s)
    values = np.concatenate([recent, earlier, prior])
    weights = np.concatenate(
        [recent_weight, earlier_weight, np.full(len(prior), _PRIOR_OBSERVATIONS / max(len(prior), 1))]
    )
    return math.exp(cheapest_growth(values, weights, view.violation_cost))


def lead_s(view: View, span_s: float) -> float:
    """The time until the change after the next one could take effect."""
    apply_s = max((view.spec(component.scaled_by).apply_s for component in view.topology), default=0.0)
    return _CHANGES_AHEAD * apply_s + _OBSERVATIONS_TO_DECIDE * span_s


def _recent_growth(logs: Array, ahead: int) -> tuple[Array, Array]:
    """ln of the growth after each observation, and how much it counts: more if the load was as restless as now."""
    if len(logs) < _LEVEL_OVER + ahead:
        return np.empty(0), np.empty(0)
    sums = np.concatenate([[0.0], np.cumsum(logs)])
    levels = (sums[_LEVEL_OVER:] - sums[:-_LEVEL_OVER]) / _LEVEL_OVER
    following = np.lib.stride_tricks.sliding_window_view(logs[_LEVEL_OVER:], ahead)
    growths = following - levels[: len(following), np.newaxis]
    restless = np.log(_restlessness(logs)[_LEVEL_OVER - 1 :])
    weights = np.exp(-0.5 * ((restless[: len(following)] - restless[-1]) / _RESTLESS_WIDTH) ** 2)
    return growths.ravel(), np.repeat(weights / ahead, ahead)


def _restlessness(logs: Array) -> Array:
    """The mean step between the latest observations, at each of them."""
    steps = np.abs(np.diff(logs, prepend=logs[0]))
    sums = np.concatenate([[0.0], np.cumsum(steps)])
    ends = np.arange(1, len(logs) + 1)
    starts = np.maximum(0, ends - _RESTLESS_OVER)
    return np.asarray((sums[ends] - sums[starts]) / (ends - starts) + _LEAST_RESTLESS)


def _earlier_growth(view: View, ahead_s: float) -> tuple[Array, Array]:
    """The growth after each minute of the history. What followed this time of earlier days counts most."""
    minutes, ahead = np.array(view.traffic.per_s), max(1, math.ceil(ahead_s / MINUTE_S))
    if len(minutes) <= ahead:
        return np.empty(0), np.empty(0)
    begins = view.traffic.first + np.arange(len(minutes) - ahead)
    apart = np.abs((begins - view.now_s / MINUTE_S + _DAY_MINUTES / 2) % _DAY_MINUTES - _DAY_MINUTES / 2)
    old = begins < view.now_s / MINUTE_S - _DAY_MINUTES / 2
    weights = np.where((apart * MINUTE_S <= _TIME_OF_DAY_S) & old, _MINUTE_WEIGHT, _OTHER_MINUTE_WEIGHT)
    following = np.lib.stride_tricks.sliding_window_view(minutes[1:], ahead)
    growths = np.log(np.maximum(following, _SMALLEST_PER_S) / np.maximum(minutes[:-ahead, np.newaxis], _SMALLEST_PER_S))
    usable = np.isfinite(growths) & (minutes[:-ahead, np.newaxis] > _SMALLEST_PER_S)
    return growths[usable], np.repeat(weights / ahead, ahead).reshape(growths.shape)[usable]


def _prior_growth(ahead_s: float) -> Array:
    shares, logs = np.array(_PRIOR_GROWTH).T
    middles = (np.arange(_PRIOR_VALUES) + 0.5) / _PRIOR_VALUES
    return np.asarray(np.interp(middles, shares, logs) * math.sqrt(ahead_s / _PRIOR_OVER_S))


def until_growth_s(view: View, room: float) -> float:
    """Return the expected time until the load exceeds its present level by `room` (ln), from its recorded minutes.

    Where the history ends before the load has risen this far, the time until its end counts. This is the cautious
    choice.
    """
    prior_s = min(MINUTE_S * (max(room, 0.0) / _USUAL_DRIFT) ** 2, _LONGEST_LOOK * MINUTE_S)
    rates = np.array(view.traffic.per_s)
    rates = rates[np.isfinite(rates) & (rates > _SMALLEST_PER_S)]
    count = len(rates)
    if count <= _LEAST_LOOK:
        return prior_s
    logs = np.log(rates)
    starts = np.unique(np.linspace(0, count - _LEAST_LOOK - 1, _MOST_STARTS).astype(np.int64))
    padded = np.concatenate([logs, np.full(_LONGEST_LOOK, -np.inf)])
    ahead = np.lib.stride_tricks.sliding_window_view(padded[1:], _LONGEST_LOOK)[starts]
    exceeded = ahead > logs[starts, np.newaxis] + room
    minutes_left = np.minimum(count - 1 - starts, _LONGEST_LOOK)
    minutes = np.where(exceeded.any(axis=1), exceeded.argmax(axis=1) + 1, minutes_left)
    weights = np.ones(len(starts))
    if count >= _DAY_MINUTES:
        apart = np.abs((starts - count + _DAY_MINUTES / 2) % _DAY_MINUTES - _DAY_MINUTES / 2)
        weights = np.exp(-0.5 * (apart * MINUTE_S / _TIME_OF_DAY_S) ** 2)
    total = float(weights @ minutes) * MINUTE_S + _PRIOR_STARTS * prior_s
    return total / (float(weights.sum()) + _PRIOR_STARTS)
