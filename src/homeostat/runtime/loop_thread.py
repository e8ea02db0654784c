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
            f"{type(error).__name__}: {error} ({where.name}, failure {self.failures}); the queries keep running"
        )


class LoopKeeper:
    """Replaces the loop when its thread has ended or has been silent for too long, at most `most_lives` times."""

    def __init__(
        self,
        make: Callable[[], Loop],
        complain: Callable[[str], None],
        *,
        silent_s: float = SILENT_S,
        most_lives: int = 5,
    ) -> None:
        self._make, self._complain = make, complain
        self._silent_s, self._lives_left = silent_s, most_lives
        self.loop = make()

    def start(self) -> None:
        self._lives_left -= 1
        self.loop.start()

    def check(self) -> None:
        quiet_s = time.monotonic() - self.loop.beat_s
        has_ended = not self.loop.thread.is_alive()
        if self.loop.stopping or not (has_ended or quiet_s > self._silent_s):
            return
        what = "has ended" if has_ended else f"has been silent for {quiet_s:.0f} s"
        self.loop.stop()
        if self._lives_left <= 0:
            self._complain(f"the manager {what} again; the queries keep running without it")
            return
        self._complain(f"the manager {what}; a new one takes over")
        self.loop = self._make()
        self.start()

    def stop(self, wait_s: float = 10.0) -> None:
        self.loop.stop()
        if self.loop.thread.is_alive():
            self.loop.thread.join(wait_s)
