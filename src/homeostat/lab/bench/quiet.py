"""Detects that other users of the machine disturbed a measurement, and repeats it.

The kernel of a virtual machine counts the time in which the host gave its processors to others (steal time). Whether a
measurement is repeated depends on that time only, never on the measured values.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from threading import Event, Lock, Thread
from typing import Any, TypeVar

Result = TypeVar("Result")
Tell = Callable[[str], None]
# Tells a measurement whether to stop early.
GivenUp = Callable[[], bool]

WINDOW_S, LOOK_AGAIN_S = 30.0, 5.0
MOST_TAKEN = 0.15
PATIENCE_S, LONGEST_WAIT_S = 3_600.0, 900.0


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True)
class CpuTime:
    """Seconds since the machine started, and how many of them went to others (steal time), per processor."""

    passed_s: float
    taken_s: float


def count() -> CpuTime:
    """Reads the kernel's counters. Without a steal counter nothing counts as taken."""
    import psutil

    times = psutil.cpu_times()
    cores = psutil.cpu_count()
    return CpuTime(sum(times) / cores, getattr(times, "steal", 0.0) / cores)


class Watch:
    """Keeps the largest share of the machine that others used in any half minute. Thread-safe."""

    def __init__(self, count: Callable[[], CpuTime] = count) -> None:
        self._count = count
        self._counts = deque([count()])
        self._looking = Lock()
        self.most = 0.0
        self.last: float | None = None

    def look(self) -> None:
        """Call this every few seconds."""
        with self._looking:
            now = self._count()
            if now.passed_s - self._counts[-1].passed_s < LOOK_AGAIN_S:
                return
            self._counts.append(now)
            while now.passed_s - self._counts[1].passed_s >= WINDOW_S:
                self._counts.popleft()
            if now.passed_s - self._counts[0].passed_s >= WINDOW_S:
                self.last = self._steal_share()
                self.most = max(self.most, self.last)

    def is_disturbed(self) -> bool:
        self.look()
        return self.most > MOST_TAKEN

    def end(self) -> None:
        """Call this at the end. If the watch lasted less than half a minute, its whole time counts."""
        self.look()
        if self.last is None and len(self._counts) > 1:
            self.last = self.most = self._steal_share()

    def _steal_share(self) -> float:
        first, now = self._counts[0], self._counts[-1]
        return (now.taken_s - first.taken_s) / (now.passed_s - first.passed_s)


@contextmanager
def watching(watch: Watch, look_again_s: float = LOOK_AGAIN_S) -> Iterator[None]:
    """Calls `look` every few seconds, in a thread of its own, while the block runs."""
    over = Event()

    def look() -> None:
        while not over.wait(look_again_s):
            watch.look()

    looking = Thread(target=look, name="watch for steal time", daemon=True)
    looking.start()
    try:
        yield
    finally:
        over.set()
        looking.join()


@dataclass(slots=True)
class Patience:
    """How many more seconds all measurements together may spend on disturbed tries and on the waits after them."""

    left_s: float = PATIENCE_S


def wait_for_quiet(longest_s: float) -> None:
    """Waits until no other program has used the machine for half a minute, at most `longest_s`."""
    watch, until_s = Watch(), time.monotonic() + longest_s
    while (watch.last is None or watch.last > MOST_TAKEN) and time.monotonic() < until_s:
        time.sleep(LOOK_AGAIN_S)
        watch.look()


def repeat_until_undisturbed(
    run: Callable[[int, GivenUp], Result],
    patience: Patience,
    tell: Tell,
    count: Callable[[], CpuTime] = count,
    wait: Callable[[float], None] = wait_for_quiet,
) -> tuple[Result, list[float]]:
    """Repeats `run` until a try is undisturbed. Returns its result, and the largest share that others used in each try.

    `run` gets the number of the try and a function that tells whether to stop early. A disturbed try stops at once,
    unless no patience is left for another; then its result counts.
    """
    steal_shares: list[float] = []
    while True:
        watch, began_s = Watch(count), count().passed_s
        is_last = patience.left_s <= 0.0
        with watching(watch):
            result = run(len(steal_shares) + 1, partial(_should_give_up, watch, is_last))
        watch.end()
        is_disturbed = watch.most > MOST_TAKEN
        steal_shares.append(round(watch.most, 3))
        if is_disturbed:
            what = "the result counts anyway" if is_last else "repeating the measurement"
            tell(f"others used {watch.most:.0%} of the machine for half a minute: {what}")
        if is_last or not is_disturbed:
            return result, steal_shares
        wait(min(LONGEST_WAIT_S, patience.left_s))
        patience.left_s -= count().passed_s - began_s


def _should_give_up(watch: Watch, is_last: bool) -> bool:
    return watch.is_disturbed() and not is_last


def disturbed_json(steal_shares: Mapping[str, Sequence[float]]) -> dict[str, Any]:
    """The largest share that others used in each try, by the name of the measurement."""
    return {
        "limit": MOST_TAKEN,
        "within_s": WINDOW_S,
        "patience_s": PATIENCE_S,
        "nevertheless": [name for name, tries in steal_shares.items() if tries[-1] > MOST_TAKEN],
        "taken_by_others": steal_shares,
    }
