"""The clocks count the time in which the bench, and what it started, could run."""

from __future__ import annotations

from homeostat.lab.chaos.running_clock import LONGEST_STEP_S, PatienceClock, RunningClock, processor_s


def test_a_suspension_of_the_bench_keeps_nobody_waiting() -> None:
    now = [100.0]
    clock = RunningClock(lambda: now[0])
    now[0] += 2.0
    assert clock() == 2.0
    now[0] += 3_600.0
    assert clock() == 2.0 + LONGEST_STEP_S


def test_patience_lasts_longer_on_a_crowded_machine() -> None:
    now, processor = [0.0], [(5.0, 3.0)]
    patience = PatienceClock(lambda: now[0], lambda: processor[0])
    now[0], processor[0] = 10.0, (6.0, 3.0)
    assert patience() == 10.0, "it never waited for a processor"
    now[0], processor[0] = 30.0, (7.0, 6.0)
    assert patience() == 10.0 + 20.0 / 4, "it waited three seconds for each one in which it ran"
    now[0] = 50.0
    assert patience() == 10.0 + 40.0 / 4, "as before, as long as nothing new is known"
    assert patience.mean_share == 0.4


def test_where_the_kernel_tells_nothing_patience_is_time() -> None:
    now = [0.0]
    patience = PatienceClock(lambda: now[0], lambda: (0.0, 0.0))
    now[0] = 10.0
    assert (patience(), patience.mean_share) == (10.0, 1.0)


def test_this_kernel_counts_the_processor() -> None:
    before_s = sum(processor_s())
    while sum(processor_s()) == before_s:
        pass
    assert sum(processor_s()) > before_s
