"""How many rows per second arrived for each batch of a recorded run."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from itertools import pairwise

import numpy as np

from homeostat.core.observation import NAN, Array
from homeostat.recorded_data.run import RecordedBatch, RecordedRun

# Keeps a batch that took no measurable time from dividing by zero. Spark's log counts in milliseconds.
SHORTEST_SPAN_S = 1e-3


def arrivals(recorded: RecordedRun) -> tuple[Array, Array]:
    """The middle of each batch, and the rows per second that arrived for it."""
    spans = [(batch, before, span_s(batch, before)) for before, batch in pairwise((None, *recorded.batches)) if batch]
    middle_s = [batch.ended_s - its_span_s / 2 for batch, _, its_span_s in spans]
    return np.array(middle_s), np.array([arrival_per_s(*each) for each in spans])


def arrivals_by_source(recorded: RecordedRun) -> dict[str, Array]:
    """The rows per second of each source; empty if the run has a single one."""
    names = dict.fromkeys(recorded.sources)
    if len(names) < 2:
        return {}
    batches_of = {name: tuple(_only(batch, recorded.sources, name) for batch in recorded.batches) for name in names}
    return {name: arrivals(replace(recorded, batches=batches))[1] for name, batches in batches_of.items()}


def span_s(batch: RecordedBatch, before: RecordedBatch | None) -> float:
    """The time since the previous batch ended."""
    began_s = before.ended_s if before is not None else batch.started_s
    return max(batch.ended_s - began_s, batch.seconds, SHORTEST_SPAN_S)


def arrival_per_s(batch: RecordedBatch, before: RecordedBatch | None, span_s: float) -> float:
    """If the source does not report what arrived, count what the batch took."""
    if before is None or not (math.isfinite(batch.arrived_rows) and math.isfinite(before.arrived_rows)):
        return batch.rows / span_s
    passed_s = batch.started_s - before.started_s
    arrived_rows = batch.arrived_rows - before.arrived_rows
    return arrived_rows / passed_s if passed_s > 0 and arrived_rows >= 0 else NAN


def _only(batch: RecordedBatch, names: Sequence[str], name: str) -> RecordedBatch:
    """The batch as if it had read this source alone; unknown if the batch and the run name different sources."""
    if len(batch.sources) != len(names):
        return replace(batch, rows=NAN, arrived_rows=NAN)
    its_sources = [source for source, other in zip(batch.sources, names, strict=True) if other == name]
    return replace(
        batch,
        rows=sum(source.rows for source in its_sources),
        arrived_rows=sum(source.arrived_rows for source in its_sources),
    )
