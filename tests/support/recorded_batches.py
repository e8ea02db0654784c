"""Recorded batches, written in one line each."""

from __future__ import annotations

from homeostat.recorded_data.run import RecordedBatch


def batches(*rows: tuple[float, float, float, float, float]) -> list[RecordedBatch]:
    """Each: start, duration, rows, arrived, pending."""
    return [
        RecordedBatch("run", number, started_s, seconds, batch_rows, arrived_rows=arrived_rows, pending_rows=pending)
        for number, (started_s, seconds, batch_rows, arrived_rows, pending) in enumerate(rows)
    ]
