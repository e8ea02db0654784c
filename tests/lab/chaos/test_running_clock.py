"""The clock counts the time in which the bench ran."""

from __future__ import annotations

from homeostat.lab.chaos.running_clock import LONGEST_STEP_S, RunningClock


def test_a_suspension_of_the_bench_keeps_nobody_waiting() -> None:
    now = [100.0]
    clock = RunningClock(lambda: now[0])
    now[0] += 2.0
    assert clock() == 2.0
    now[0] += 3_600.0
    assert clock() == 2.0 + LONGEST_STEP_S
