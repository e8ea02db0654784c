"""A measurement is tried again when others used much of the machine meanwhile, and for no other reason."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from threading import Event

import pytest

from homeostat.lab.bench.quiet import (
    MOST_TAKEN,
    CpuTime,
    GivenUp,
    Patience,
    Watch,
    count,
    repeat_until_undisturbed,
    watching,
)

MUCH = 2 * MOST_TAKEN


class Machine:
    """Others have the given share of each second that passes."""

    def __init__(self) -> None:
        self.now = CpuTime(1000.0, 50.0)

    def __call__(self) -> CpuTime:
        return self.now

    def pass_by(self, seconds: int, taken: float) -> Iterator[None]:
        for _ in range(seconds):
            self.now = CpuTime(self.now.passed_s + 1.0, self.now.taken_s + taken)
            yield


def watched(*spans: tuple[int, float]) -> Watch:
    machine = Machine()
    watch = Watch(machine)
    for seconds, taken in spans:
        for _ in machine.pass_by(seconds, taken):
            watch.look()
    return watch


def test_the_worst_half_minute_counts_and_not_the_mean() -> None:
    assert watched((300, 0.0), (30, MUCH), (300, 0.0)).most == pytest.approx(MUCH)
    assert watched((630, 0.05)).most == pytest.approx(0.05)


def test_a_moment_is_not_half_a_minute() -> None:
    assert not watched((60, 0.0), (5, MUCH), (60, 0.0)).is_disturbed()


def test_the_last_half_minute_is_forgotten_when_it_is_over() -> None:
    assert watched((60, MUCH), (60, 0.0)).last == 0.0


def test_nothing_is_known_before_half_a_minute_has_passed() -> None:
    assert watched((20, 1.0)).last is None


def test_what_took_less_counts_as_a_whole_when_it_is_over() -> None:
    watch = watched((10, 1.0), (10, 0.0))
    assert not watch.is_disturbed()
    watch.end()
    assert watch.most == pytest.approx(0.5)


def test_the_end_of_what_took_longer_adds_nothing() -> None:
    watch = watched((60, 0.0), (5, MUCH))
    watch.end()
    assert watch.most == pytest.approx(MUCH * 5 / 30)


def test_a_watch_is_kept_beside_what_is_done_and_no_longer() -> None:
    machine, enough_readings = Machine(), Event()
    passing = machine.pass_by(600, MUCH)

    def counted() -> CpuTime:
        next(passing)
        if machine.now.passed_s > 1060.0:
            enough_readings.set()
        return machine()

    watch = Watch(counted)
    with watching(watch, look_again_s=0.001):
        assert enough_readings.wait(60.0)
    assert watch.is_disturbed()
    assert not any(thread.name == "watch for steal time" for thread in threading.enumerate())


class Tried:
    """Each try takes five minutes, unless it is given up."""

    def __init__(self, *taken: float, patience: Patience | None = None) -> None:
        self.machine, self.taken = Machine(), taken
        self.patience = patience or Patience()
        self.seconds: list[int] = []
        self.waited: list[float] = []
        self.lines: list[str] = []

    def run(self, attempt: int, given_up: GivenUp) -> int:
        passed = 0
        for _ in self.machine.pass_by(300, self.taken[attempt - 1]):
            passed += 1
            if given_up():
                break
        self.seconds.append(passed)
        return attempt

    def wait(self, longest_s: float) -> None:
        self.waited.append(longest_s)
        for _ in self.machine.pass_by(100, MUCH):
            pass

    def result(self) -> tuple[int, list[float]]:
        return repeat_until_undisturbed(self.run, self.patience, self.lines.append, self.machine, self.wait)


def test_a_quiet_try_is_the_only_one() -> None:
    tried = Tried(0.01)
    assert tried.result() == (1, [0.01])
    assert tried.seconds == [300]
    assert tried.lines == []


def test_a_disturbed_one_is_given_up_and_made_again_when_it_is_quiet() -> None:
    tried = Tried(MUCH, 0.0)
    assert tried.result() == (2, [MUCH, 0.0])
    assert tried.seconds[0] < 60
    assert tried.seconds[1] == 300
    assert len(tried.waited) == 1
    assert tried.lines == ["others used 30% of the machine for half a minute: repeating the measurement"]


@pytest.mark.slow
def test_a_burst_counts_during_a_try_that_asks_for_nothing() -> None:
    machine, looked = Machine(), Event()

    def counted() -> CpuTime:
        now = machine()
        if threading.current_thread().name == "watch for steal time":
            looked.set()
        return now

    def run(attempt: int, given_up: GivenUp) -> int:
        for _ in machine.pass_by(60, MUCH if attempt == 1 else 0.0):
            pass
        assert looked.wait(60.0)
        for _ in machine.pass_by(600, 0.0):
            pass
        return attempt

    result, taken = repeat_until_undisturbed(run, Patience(), lambda line: None, counted, lambda longest_s: None)
    assert result == 2
    assert taken == [MUCH, 0.0]


def test_without_patience_for_another_it_goes_to_its_end_and_says_that_it_was_disturbed() -> None:
    tried = Tried(*[MUCH] * 4, patience=Patience(300.0))
    assert tried.result() == (4, [MUCH] * 4)
    assert tried.seconds[-2:] == [tried.seconds[0], 300]
    assert tried.lines[-1].endswith("the result counts anyway")


def test_quiet_tries_cost_no_patience_and_disturbed_ones_what_they_and_the_wait_took() -> None:
    tried = Tried(MUCH, 0.0)
    at_first_s = tried.patience.left_s
    tried.result()
    assert tried.patience.left_s == at_first_s - tried.seconds[0] - 100


def test_nothing_waits_longer_than_the_patience_left() -> None:
    tried = Tried(MUCH, 0.0, patience=Patience(40.0))
    tried.result()
    assert tried.waited == [40.0]


def test_this_machine_counts_its_time() -> None:
    first, second = count(), count()
    assert 0 <= first.taken_s <= first.passed_s
    assert second.passed_s >= first.passed_s
