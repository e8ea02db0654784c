"""How many rows arrived, read from what the sources report rather than from what the batches took."""

from __future__ import annotations

import math
from dataclasses import replace

from homeostat.recorded_data.arrivals import arrivals, arrivals_by_source
from homeostat.recorded_data.run import RecordedBatch, RecordedRun, RecordedSource


def test_arrivals_are_read_off_what_the_source_had_got_when_a_batch_began() -> None:
    """Not off what the batches took, which says nothing about the load while they fall behind."""
    arrived = [0.0, 1_000.0, 3_000.0, 6_000.0]
    behind = [
        RecordedBatch("r", n, 10.0 * n, 10.0, 500.0, arrived_rows=there, pending_rows=there - 500.0 * n)
        for n, there in enumerate(arrived)
    ]
    times_s, per_s = arrivals(RecordedRun("a", "q", (), tuple(behind), ()))
    assert times_s.tolist() == [5.0, 15.0, 25.0, 35.0]
    assert per_s.tolist() == [50.0, 100.0, 200.0, 300.0]


def test_sources_are_are_distinguishable_by_what_each_had_got() -> None:
    """Two sources of one stage are one; where a source does not tell what arrived, it is what was taken."""
    arrived_rows = [(0.0, 0.0), (1_000.0, 100.0), (3_000.0, 200.0)]
    batches = tuple(
        RecordedBatch(
            "r", n, 10.0 * n, 10.0, 250.0, sources=(RecordedSource(10, a), RecordedSource(40, b), RecordedSource(200))
        )
        for n, (a, b) in enumerate(arrived_rows)
    )
    run = RecordedRun("a", "q", (), batches, (), sources=("clicks", "clicks", "orders"))
    apart = arrivals_by_source(run)
    assert apart["clicks"].tolist() == [5.0, 110.0, 210.0]
    assert apart["orders"].tolist() == [20.0, 20.0, 20.0]
    assert arrivals_by_source(replace(run, sources=("clicks", "clicks", "clicks"))) == {}
    other = replace(run, batches=(*batches, replace(batches[-1], number=3, sources=(RecordedSource(10),))))
    assert math.isnan(arrivals_by_source(other)["orders"][-1])
