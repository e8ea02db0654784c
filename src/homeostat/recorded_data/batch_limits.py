"""Estimates of a recorded query's trigger interval and of its limit on rows per batch."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from math import inf

import numpy as np

from homeostat.recorded_data.run import RecordedBatch

# A batch waited for its trigger if it ended before the next one began by more than this share of the time between
# their starts. A smaller share would take the driver's own pause between two batches for waiting. Chosen by hand.
WAITING_SHARE = 0.05
# One or two cases may be chance; from this many on, they count as a rule. Chosen by hand.
LEAST_CASES = 3


def trigger_s(batches: Sequence[RecordedBatch]) -> float:
    """The median time between the starts of batches that waited for the trigger; 0 if fewer than three did."""
    gaps_s = [
        after.started_s - before.started_s
        for before, after in pairwise(batches)
        if before.run == after.run
        and after.number == before.number + 1
        and after.started_s - before.ended_s > WAITING_SHARE * (after.started_s - before.started_s)
    ]
    return round(float(np.median(gaps_s)), 1) if len(gaps_s) >= LEAST_CASES else 0.0


def rows_per_trigger(batches: Sequence[RecordedBatch]) -> float:
    """The most rows a batch took, if at least three batches took that many and left rows behind; else infinity."""
    most = max(batch.rows for batch in batches)
    full = sum(batch.rows == most and batch.pending_rows > 0 for batch in batches)
    return most if full >= LEAST_CASES else inf
