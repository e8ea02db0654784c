"""What a task costs besides its rows: starting it, sending it out, opening its state."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from homeostat.core.digest import ComponentDigest, Digest
from homeostat.core.observation import Array
from homeostat.core.view import View

_OVER = 40
_LEAST_SEEN = 6
_LEAST_KNOWN = 0.5
# What the rows of a task must differ by, largest over smallest, to tell the cost of a row from that of a task.
_LEAST_RANGE = 1.3
# Two observations whose rows hardly differ tell no slope, only noise.
_LEAST_APART = 0.1
_MOST_OF_A_TASK = 0.8


def task_costs(view: View) -> dict[str, float]:
    """Seconds that each task of a component takes whatever its rows; 0 where rows never varied enough to tell.

    Taking all of a task's time for that of its rows is the cautious side: it plans for too much rather than too little.
    """
    return view.once("task costs", _task_costs)


def _task_costs(view: View) -> dict[str, float]:
    seen = [d for d in view.history[-_OVER:] if d.epoch >= 0]
    return {name: _cost(_means(seen, name)) for name in view.topology.names}


def _means(digests: Sequence[Digest], name: str) -> Array:
    """Rows and seconds of the mean task: linear in each other whatever the skew."""
    found = [d.components[name] for d in digests if name in d.components]
    return np.array([_mean(c) for c in found if c.known >= _LEAST_KNOWN and c.rows > 0]).reshape(-1, 2)


def _mean(component: ComponentDigest) -> tuple[float, float]:
    measured = component.instances * component.known
    return component.rows / measured, component.run_s / measured


def _cost(means: Array) -> float:
    """The intercept of a line through the middle of all slopes between two observations (Theil and Sen)."""
    means = means[np.isfinite(means).all(axis=1)]
    if len(means) < _LEAST_SEEN:
        return 0.0
    rows, seconds = means.T
    low, high = np.percentile(rows, (10, 90))
    if high < _LEAST_RANGE * low:
        return 0.0
    one, other = np.triu_indices(len(rows), k=1)
    apart = rows[other] - rows[one]
    telling = np.abs(apart) >= _LEAST_APART * float(rows.mean())
    slope = float(np.median((seconds[other] - seconds[one])[telling] / apart[telling])) if telling.any() else 0.0
    at_least_s = float(np.percentile(seconds, 10))
    cost = float(np.median(seconds - slope * rows)) if slope > 0 else _MOST_OF_A_TASK * at_least_s
    return min(max(cost, 0.0), _MOST_OF_A_TASK * at_least_s) if math.isfinite(cost) else 0.0
