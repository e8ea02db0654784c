"""Logs that are written beside the batches hold a batch up only when writes pile up."""

from __future__ import annotations

from homeostat.sim.microbatch.log_writer import LogWriter


def test_a_batch_waits_only_when_two_writes_wait_already() -> None:
    writer = LogWriter()
    assert [writer.write(0.0, 4.0) for _ in range(4)] == [0.0, 0.0, 0.0, 4.0]
    assert writer.write(5.0, 4.0) == 3.0


def test_writes_that_are_done_hold_nothing_up() -> None:
    writer = LogWriter()
    for now_s in (0.0, 5.0, 10.0, 15.0, 20.0):
        assert writer.write(now_s, 4.0) == 0.0


def test_a_query_that_stops_finishes_them() -> None:
    writer = LogWriter()
    for _ in range(3):
        writer.write(0.0, 4.0)
    writer.finish()
    assert writer.write(0.0, 4.0) == 0.0
