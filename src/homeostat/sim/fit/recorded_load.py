"""The load of a recorded run, and what its batches tell about trigger and admission."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np

from homeostat.recordings.run import RecordedBatch
from homeostat.sim.scenario.spec import WorkloadSpec

# A rate that differs by more than this from the mean of its step begins another.
NEW_STEP = 0.2
# A batch that ended this much before the next began had to wait for its trigger.
WAITED = 0.05
OFTEN = 3


def workload(batches: Sequence[RecordedBatch]) -> WorkloadSpec:
    """Steps of about equal arrival, from the first batch's start on."""
    origin_s = batches[0].started_s
    told = any(np.isfinite(batch.arrived_rows) for batch in batches)
    steps: list[tuple[float, float]] = []
    rows, seconds = 0.0, 0.0
    for before, after in pairwise(batches):
        # Where the source never tells what arrived, it is what the later batch took.
        arrived = after.arrived_rows - before.arrived_rows if told else after.rows
        passed_s = after.started_s - before.started_s
        if not np.isfinite(arrived) or arrived < 0 or passed_s <= 0:
            continue
        at_s = round(before.started_s - origin_s, 1)
        if not steps or (at_s > steps[-1][0] and _differs(arrived / passed_s, rows / seconds)):
            steps.append((at_s, 0.0))
            rows, seconds = 0.0, 0.0
        rows, seconds = rows + arrived, seconds + passed_s
        steps[-1] = (steps[-1][0], float(f"{rows / seconds:.4g}"))
    if not steps:
        steps = [(0.0, float(f"{batches[0].rows / max(batches[0].seconds, 1e-3):.4g}"))]
    return WorkloadSpec("steps", steps=((0.0, steps[0][1]), *(step for step in steps[1:] if step[0] > 0)))


def _differs(rate: float, mean: float) -> bool:
    return abs(rate - mean) > NEW_STEP * mean


def trigger_s(batches: Sequence[RecordedBatch]) -> float:
    """The usual time between batches that waited for it; 0 if none did."""
    gaps = [
        after.started_s - before.started_s
        for before, after in pairwise(batches)
        if before.run == after.run
        and after.number == before.number + 1
        and after.started_s - before.ended_s > WAITED * (after.started_s - before.started_s)
    ]
    return round(float(np.median(gaps)), 1) if len(gaps) >= OFTEN else 0.0


def bound(batches: Sequence[RecordedBatch]) -> float:
    """The most rows a batch took, if that left rows behind again and again; else there is no telling."""
    most = max(batch.rows for batch in batches)
    full = sum(batch.rows == most and batch.pending_rows > 0 for batch in batches)
    return most if full >= OFTEN else inf
