"""The managers' thread: it may fail, hang or end, and another one takes over."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import cast

from homeostat.runtime.loop_thread import Loop, LoopKeeper
from homeostat.runtime.manager import Manager

INTERVAL_S = 0.01
LIMIT_S = 30.0


class Worker:
    """In a manager's place: counts its rounds and does in each what it was told to."""

    def __init__(self, each_round: Callable[[int], None] = lambda _: None) -> None:
        self.engine = SimpleNamespace(now_s=0.0)
        self.started, self.rounds = 0, 0
        self._each_round = each_round

    def start(self) -> None:
        self.started += 1

    def advance(self, until_s: float) -> None:
        self.rounds += 1
        self._each_round(self.rounds)


def loop_of(*workers: Worker, complain: Callable[[str], None] = lambda _: None) -> Loop:
    return Loop(lambda: cast(Sequence[Manager], workers), complain, INTERVAL_S)


def until(condition: Callable[[], bool]) -> None:
    limit_s = time.monotonic() + LIMIT_S
    while not condition():
        assert time.monotonic() < limit_s
        time.sleep(INTERVAL_S)


def fail(_: int) -> None:
    raise ValueError("this cannot be")


def end(_: int) -> None:
    raise SystemExit


def test_a_manager_that_fails_is_reported_and_counted_and_harms_nobody_else() -> None:
    messages: list[str] = []
    failing, healthy = Worker(fail), Worker()
    loop = loop_of(failing, healthy, complain=messages.append)
    loop.start()
    until(lambda: healthy.rounds >= 3)
    loop.stop()
    loop.thread.join(LIMIT_S)
    assert loop.failures == failing.rounds >= 3
    assert messages[0] == "ValueError: this cannot be (in fail; failure number 1); the queries keep running"


def test_managers_that_cannot_be_made_yet_are_made_later() -> None:
    tries: list[int] = []
    worker = Worker()

    def make() -> Sequence[Manager]:
        tries.append(1)
        if len(tries) < 3:
            raise OSError("the log is locked")
        return cast(Sequence[Manager], [worker])

    messages: list[str] = []
    loop = Loop(make, messages.append, INTERVAL_S)
    loop.start()
    until(lambda: worker.rounds >= 1)
    loop.stop()
    assert len(messages) == 2
    assert worker.started == 1


def test_a_loop_that_stops_while_it_tries_to_begin_ends() -> None:
    def make() -> Sequence[Manager]:
        raise OSError("the log is locked")

    loop = Loop(make, lambda _: None, INTERVAL_S)
    loop.start()
    until(lambda: loop.failures >= 1)
    loop.stop()
    loop.thread.join(LIMIT_S)
    assert not loop.thread.is_alive()


def test_a_thread_that_ends_too_often_within_an_hour_is_reported_to_a_person_and_replaced_later() -> None:
    messages: list[str] = []
    alerts: list[str] = []
    hours = [0.0]
    keeper = LoopKeeper(
        lambda: loop_of(Worker(end)), messages.append, alerts.append, most_lives=3, clock=lambda: 3600.0 * hours[0]
    )
    keeper.start()

    def ended() -> bool:
        return not keeper.loop.thread.is_alive()

    for _ in range(4):
        until(ended)
        keeper.check()
    assert messages == ["the manager has ended; a new one takes over"] * 2
    assert alerts == ["the manager has ended again, after 3 starts within 60 min; the queries keep running without it"]
    hours[0] = 1.1
    keeper.check()
    assert len(messages) == 3
    assert len(alerts) == 1


def test_hangs_that_are_weeks_apart_never_use_up_the_starts() -> None:
    messages: list[str] = []
    alerts: list[str] = []
    days = [0.0]
    keeper = LoopKeeper(lambda: loop_of(Worker(end)), messages.append, alerts.append, clock=lambda: 86_400.0 * days[0])
    keeper.start()
    for _ in range(20):
        until(lambda: not keeper.loop.thread.is_alive())
        keeper.check()
        days[0] += 7.0
    assert (len(messages), alerts) == (20, [])


def test_no_more_threads_are_left_hanging_than_may_start_however_long_that_takes() -> None:
    wake, hours, alerts = threading.Event(), [0.0], list[str]()
    keeper = LoopKeeper(
        lambda: loop_of(Worker(lambda _: assert_true(wake.wait(LIMIT_S)))),
        lambda _: None,
        alerts.append,
        silent_s=-1.0,
        most_lives=2,
        clock=lambda: 3600.0 * hours[0],
    )
    keeper.start()
    loops = []
    for _ in range(5):
        keeper.check()
        loops.append(keeper.loop)
        hours[0] += 2.0
    assert len(set(loops)) == 2
    assert len(alerts) == 1
    wake.set()
    for loop in loops:
        loop.thread.join(LIMIT_S)
    keeper.stop()


def test_a_thread_that_hangs_is_replaced_and_does_no_more_rounds_when_it_wakes_up() -> None:
    wake = threading.Event()
    messages: list[str] = []
    hanging, after_it, healthy = Worker(lambda _: assert_true(wake.wait(LIMIT_S))), Worker(), Worker()
    lives = iter([loop_of(hanging, after_it), loop_of(healthy)])
    keeper = LoopKeeper(lambda: next(lives), messages.append, silent_s=0.2)
    keeper.start()
    first = keeper.loop

    def replaced() -> bool:
        keeper.check()
        return keeper.loop is not first

    until(replaced)
    assert messages == ["the manager has been silent for 0 s; a new one takes over"]
    wake.set()
    first.thread.join(LIMIT_S)
    assert (hanging.rounds, after_it.rounds) == (1, 0)
    until(lambda: healthy.rounds >= 2)
    keeper.stop()
    assert not keeper.loop.thread.is_alive()


def assert_true(condition: bool) -> None:
    assert condition


def test_a_keeper_that_was_stopped_replaces_nothing() -> None:
    messages: list[str] = []
    keeper = LoopKeeper(lambda: loop_of(Worker()), messages.append, silent_s=0.0)
    keeper.start()
    keeper.stop()
    keeper.check()
    assert messages == []
