"""The load of a recorded run as steps of a constant rate."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from homeostat.recorded_data.run import RecordedBatch
from homeostat.sim.scenario.spec import WorkloadSpec

# A rate that differs from the mean of its step by more than this share begins a new step. A smaller share follows the
# noise of single batches, a larger one misses real steps. Chosen by hand.
NEW_STEP_FROM = 0.2
# Keeps a first batch that took no measurable time from dividing by zero.
SHORTEST_BATCH_S = 1e-3


def workload(batches: Sequence[RecordedBatch]) -> WorkloadSpec:
    """Steps of about equal arrival, from the start of the first batch on."""
    origin_s = batches[0].started_s
    arrivals_reported = any(np.isfinite(batch.arrived_rows) for batch in batches)
    steps: list[tuple[float, float]] = []
    rows, seconds = 0.0, 0.0
    for before, after in pairwise(batches):
        # If a source never reports arrivals, the rows of the next batch count as what arrived.
        arrived_rows = after.arrived_rows - before.arrived_rows if arrivals_reported else after.rows
        passed_s = after.started_s - before.started_s
        if not np.isfinite(arrived_rows) or arrived_rows < 0 or passed_s <= 0:
            continue
        at_s = round(before.started_s - origin_s, 1)
        if not steps or (at_s > steps[-1][0] and _differs(arrived_rows / passed_s, rows / seconds)):
            steps.append((at_s, 0.0))
            rows, seconds = 0.0, 0.0
        rows, seconds = rows + arrived_rows, seconds + passed_s
        steps[-1] = (steps[-1][0], float(f"{rows / seconds:.4g}"))
    if not steps:
        steps = [(0.0, float(f"{batches[0].rows / max(batches[0].seconds, SHORTEST_BATCH_S):.4g}"))]
    return WorkloadSpec("steps", steps=((0.0, steps[0][1]), *(step for step in steps[1:] if step[0] > 0)))


def _differs(rate: float, mean: float) -> bool:
    return abs(rate - mean) > NEW_STEP_FROM * mean
