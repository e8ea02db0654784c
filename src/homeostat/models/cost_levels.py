"""Scales measurements from before a task became slower or faster to the present level of its cost.

If the number of executors grows after a task became slower, a fit over the whole history cannot separate the two
changes: it would attribute the slowing to the executors. But the step came while the number of executors was constant.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from homeostat.core.observation import Array

# A level is the mean of at least this many batches. Fewer find a step sooner, but mistake one slow batch for a step. A
# choice.
_LEAST_BATCHES = 3
# A step is at least this large in ln (28 %) and at least this many standard errors: smaller ones are noise or the fixed
# part of a task, which the fit itself explains. Choices.
_LEAST_STEP, _STEP_ERRORS = 0.25, 8.0
# Columns of a line of `mean_tasks`.
_ROWS, _SECONDS, _EXECUTORS = 0, 2, 4


def at_present_level(lines: Array) -> Array:
    """Return the lines of `mean_tasks` with their seconds as if the cost had always been at its latest level.

    Only steps within a stretch of batches with the same number of executors count. If that number never changed, the
    lines are returned as they are.
    """
    usable = np.flatnonzero(np.isfinite(lines).all(axis=1) & (lines[:, _ROWS] > 0) & (lines[:, _SECONDS] > 0))
    executors = lines[usable, _EXECUTORS]
    changes = np.flatnonzero(np.diff(executors)) + 1
    if not len(changes):
        return lines
    rows, seconds = np.log(lines[usable, _ROWS]), np.log(lines[usable, _SECONDS])
    missing = np.zeros(len(lines))
    for start, end in pairwise([0, *changes.tolist(), len(usable)]):
        for at, step in _steps(rows[start:end], seconds[start:end]):
            missing[: usable[start + at]] += step
    if not missing.any():
        return lines
    levelled = lines.copy()
    levelled[:, _SECONDS] *= np.exp(missing)
    return levelled


def _steps(rows: Array, seconds: Array) -> list[tuple[int, float]]:
    """The steps in ln(seconds per row) and where they are: the largest one, then those on either side of it."""
    edges, unexamined = {0, len(rows)}, [(0, len(rows))]
    costs = seconds - rows
    while unexamined:
        start, end = unexamined.pop()
        split = _split(costs[start:end])
        if split is not None:
            edges.add(start + split)
            unexamined += [(start, start + split), (start + split, end)]
    steps = []
    for (start, at), (_, end) in pairwise(pairwise(sorted(edges))):
        step = _unexplained(
            rows[at:end].mean() - rows[start:at].mean(), seconds[at:end].mean() - seconds[start:at].mean()
        )
        if abs(step) >= _LEAST_STEP:
            steps.append((at, step))
    return steps


def _split(costs: Array) -> int | None:
    """The place at which the costs before and after differ most; None if they do not differ enough."""
    count = len(costs)
    if count < 2 * _LEAST_BATCHES:
        return None
    before = np.arange(_LEAST_BATCHES, count - _LEAST_BATCHES + 1)
    sums = np.cumsum(costs)
    differences = (sums[-1] - sums[before - 1]) / (count - before) - sums[before - 1] / before
    weights = before * (count - before) / count
    best = int(np.argmax(differences**2 * weights))
    difference, at = float(differences[best]), int(before[best])
    within = float(((costs[:at] - costs[:at].mean()) ** 2).sum() + ((costs[at:] - costs[at:].mean()) ** 2).sum())
    error = np.sqrt(within / (count - 2) / weights[best])
    return at if abs(difference) >= max(_LEAST_STEP, _STEP_ERRORS * error) else None


def _unexplained(rows: float, seconds: float) -> float:
    """How far the step in ln(seconds) goes beyond what the step in ln(rows) explains.

    Seconds that have a fixed part and a part per row change in the direction of the rows, and by no greater factor.
    """
    return float(seconds - np.clip(seconds, min(rows, 0.0), max(rows, 0.0)))
