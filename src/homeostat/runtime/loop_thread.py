"""The thread in which managers run. It may fail, hang or end without any effect on the queries."""

from __future__ import annotations

import threading
import time
import traceback
from collections.abc import Callable, Sequence

from homeostat.runtime.manager import Manager

INTERVAL_S = 1.0
LONGEST_BACK_OFF_S = 60.0
# Longer than any action that a new loop repeats when it starts.
SILENT_S = 300.0
# The most loops that may start within the time below. A larger number survives longer problems; a smaller number alerts
# a person sooner. Choices: five silences of SILENT_S fit in half of the time, so that a loop that always hangs raises
# an alert within that time.
MOST_LIVES = 5
LIVES_WITHIN_S = 3600.0


class Loop:
    """One thread. It builds its managers itself, so that a new loop starts from what is in the store.

    A loop that hung and was replaced must not act when it wakes up: new managers fence off the earlier ones.
    """

    def __init__(
        self,
        managers: Callable[[], Sequence[Manager]],
        complain: Callable[[str], None],
        interval_s: float = INTERVAL_S,
    ) -> None:
        self._managers, self._complain, self._interval_s = managers, complain, interval_s
        self._stopping = threading.Event()
        self.beat_s = time.monotonic()
        self.failures = 0
        self.thread = threading.Thread(target=self._live, name="homeostat", daemon=True)

    def start(self) -> None:
        self.thread.start()

    def stop(self) -> None:
        """Finish the current round and end. Join the thread to wait for it."""
        self._stopping.set()

    @property
    def stopping(self) -> bool:
        return self._stopping.is_set()

    def _live(self) -> None:
        try:
            self._go_round()
        except BaseException as error:  # report why the thread ended; the keeper starts another
            self._report_failure(error)

    def _go_round(self) -> None:
        managers = self._patiently(self._begin)
        while managers is not None and not self._stopping.is_set():
            self.beat_s = time.monotonic()
            for manager in managers:
                if not self._stopping.is_set():
                    self._advance(manager)
            self._stopping.wait(self._interval_s)

    def _begin(self) -> Sequence[Manager]:
        managers = self._managers()
        for manager in managers:
            manager.start()
        return managers

    def _patiently(self, begin: Callable[[], Sequence[Manager]]) -> Sequence[Manager] | None:
        """Retry with back-off: the store may be locked, or Spark may not answer yet."""
        pause_s = self._interval_s
        while not self._stopping.is_set():
            self.beat_s = time.monotonic()
            try:
                return begin()
            except Exception as error:
                self._report_failure(error)
                self._stopping.wait(pause_s)
                pause_s = min(2 * pause_s, LONGEST_BACK_OFF_S)
        return None

    def _advance(self, manager: Manager) -> None:
        try:
            manager.advance(manager.engine.now_s)
        except Exception as error:
            self._report_failure(error)

    def _report_failure(self, error: BaseException) -> None:
        self.failures += 1
        where = traceback.extract_tb(error.__traceback__)[-1]
        self._complain(
            f"{type(error).__name__}: {error} (in {where.name}; failure number {self.failures}); "
            "the queries keep running"
        )


class LoopKeeper:
    """Replaces the loop when its thread has ended or has been silent for too long.

    At most `most_lives` loops start within `within_s`. A thread that hangs cannot be ended, so no more than that many
    are left hanging. When no further loop may start, `alert` gets one line, and the next loop starts once it may.
    """

    def __init__(
        self,
        make: Callable[[], Loop],
        complain: Callable[[str], None],
        alert: Callable[[str], None] | None = None,
        *,
        silent_s: float = SILENT_S,
        most_lives: int = MOST_LIVES,
        within_s: float = LIVES_WITHIN_S,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._make, self._complain, self._alert = make, complain, alert or complain
        self._silent_s, self._most_lives, self._within_s, self._clock = silent_s, most_lives, within_s, clock
        self._starts_s: list[float] = []
        self._hanging: list[Loop] = []
        self._stopped = self._exhausted = False
        self.loop = make()

    def start(self) -> None:
        self._starts_s.append(self._clock())
        self.loop.start()

    def check(self) -> None:
        quiet_s = time.monotonic() - self.loop.beat_s
        has_ended = not self.loop.thread.is_alive()
        if self._stopped or not (has_ended or quiet_s > self._silent_s):
            return
        what = "has ended" if has_ended else f"has been silent for {quiet_s:.0f} s"
        self.loop.stop()
        if not self._may_start():
            if not self._exhausted:
                starts = f"{len(self._starts_s)} starts within {self._within_s / 60:.0f} min"
                self._alert(f"the manager {what} again, after {starts}; the queries keep running without it")
            self._exhausted = True
            return
        self._exhausted = False
        self._complain(f"the manager {what}; a new one takes over")
        self._hanging.append(self.loop)
        self.loop = self._make()
        self.start()

    def stop(self, wait_s: float = 10.0) -> None:
        self._stopped = True
        self.loop.stop()
        if self.loop.thread.is_alive():
            self.loop.thread.join(wait_s)

    def _may_start(self) -> bool:
        now_s = self._clock()
        self._starts_s = [at_s for at_s in self._starts_s if now_s - at_s < self._within_s]
        self._hanging = [loop for loop in self._hanging if loop.thread.is_alive()]
        return max(len(self._starts_s), len(self._hanging)) < self._most_lives
