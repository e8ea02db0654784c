"""What Demeter computes with: the workload that comes, the time to recover, and whether latencies are bad."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from homeostat.core.observation import NAN, Array

# Minutes that the forecast is fitted to: more make it steadier, fewer newer. Ours; the original is fitted to all.
_FITTED = 720
# Autoregressive terms at most, and minutes needed for each of them. auto_arima tries up to five.
_MOST_TERMS, _EACH = 3, 10
_STABLE = 0.999


def bad_latency(ratio: float) -> bool:
    """Whether a latency so many times the lowest one is in the class of bad ones: max(0, tanh(log4 ratio)) rounds to 1.

    >>> bad_latency(2.1), bad_latency(2.2)
    (False, True)
    """
    return max(0.0, math.tanh(math.log(ratio, 4.0))) > 0.5 if ratio > 0 else False


def recovery_s(utilisation: float, downtime_s: float, checkpoint_s: float) -> float:
    """How long a failure lasts, until everything that waited has been processed.

    What arrived since the last checkpoint and during the downtime takes its share of time, in which more arrives, and
    so on: a geometric series.

    >>> round(recovery_s(0.75, downtime_s=30.0, checkpoint_s=10.0), 6)
    150.0
    """
    if not utilisation < 1.0:
        return math.inf
    return downtime_s + (downtime_s + checkpoint_s) * utilisation / (1.0 - utilisation)


def segment(per_s: float, least_per_s: float, width_per_s: float) -> float:
    """The first edge at or above the rate, where segments of one width begin at the lowest rate.

    >>> segment(14_000.0, least_per_s=3_000.0, width_per_s=10_000.0)
    23000.0
    """
    if width_per_s <= 0 or per_s <= least_per_s:
        return max(per_s, least_per_s)
    return least_per_s + width_per_s * math.ceil((per_s - least_per_s) / width_per_s - 1e-9)


def efficient(valid: Sequence[int], spare: float) -> int | None:
    """The cheapest of the valid sizes, but neither within `spare` of the smallest nor below the quantile `spare` − 1.

    The original leaves these out because its models may be wrong about them. None if no size is left.

    >>> efficient([8, 12, 16, 20, 24], 1.25)
    12
    """
    if len(valid) < 2:
        return valid[0] if valid else None
    logs = np.log(valid)
    least = max(logs.min() + math.log(spare), float(np.quantile(logs, spare - 1.0)))
    enough = [size for size, log in zip(valid, logs.tolist(), strict=True) if log >= least - 1e-9]
    return min(enough, default=None)


def forecast(per_s: Sequence[float], steps: int) -> Array:
    """The next values of a series without gaps at its end, by an ARIMA(p, 1, 0) with the p of the lowest AIC."""
    series = _without_gaps(per_s)
    if not len(series):
        return np.full(steps, NAN)
    differences = np.diff(series)
    terms = _terms(differences)
    recent = differences[::-1][: len(terms)].tolist()
    values, level = [], float(series[-1])
    for _ in range(steps):
        change = float(np.dot(terms, recent))
        recent = [change, *recent][: len(terms)]
        level += change
        values.append(max(level, 0.0))
    return np.array(values)


def _without_gaps(per_s: Sequence[float]) -> Array:
    values = np.array(per_s[-_FITTED:], dtype=np.float64)
    gaps = np.flatnonzero(~np.isfinite(values))
    return values[gaps[-1] + 1 :] if len(gaps) else values


def _terms(differences: Array) -> Array:
    """The autoregressive terms, the latest first; none if nothing explains the differences."""
    count, least = len(differences) - _MOST_TERMS, math.inf
    best: Array = np.zeros(0)
    for order in range(_MOST_TERMS + 1):
        if count < _EACH * (order + 1):
            break
        later = differences[_MOST_TERMS:]
        earlier = np.stack([differences[_MOST_TERMS - lag : -lag] for lag in range(1, order + 1)] or [0.0 * later], 1)
        terms = np.asarray(np.linalg.lstsq(earlier, later, rcond=None)[0][:order], dtype=np.float64)
        error = float(np.mean((later - earlier[:, :order] @ terms) ** 2))
        criterion = count * math.log(max(error, 1e-300)) + 2.0 * order
        if criterion < least and _is_stable(terms):
            least, best = criterion, terms
    return best


def _is_stable(terms: Array) -> bool:
    return not len(terms) or bool(np.abs(np.roots([1.0, *(-terms)])).max() < _STABLE)
