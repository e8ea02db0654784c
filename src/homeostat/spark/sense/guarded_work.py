"""Runs the work of sensors so that an error is reported as an event instead of ending a thread."""

from __future__ import annotations

from collections.abc import Callable

from homeostat.core.events import Event, Failure
from homeostat.spark.sense.sensor_error import SensorError

_REPEAT_AFTER_S = 60.0  # a choice: a failure that comes back every second is one entry in the log


class GuardedWork:
    """`spark_answers` is False from a failed request until the executors could be read again."""

    def __init__(self, emit: Callable[[Event], None], clock: Callable[[], float]) -> None:
        self._emit, self._clock = emit, clock
        self._failed_s: dict[tuple[str, str], float] = {}
        self.spark_answers = False

    def run(self, where: str, work: Callable[[], object]) -> bool:
        """Return whether the work succeeded. A failure of the same kind is reported again only after a minute without
        it."""
        try:
            work()
        except SensorError as error:
            self.spark_answers = False
            self._report(where, error.kind, error.line)
        except Exception as error:
            self._report(where, type(error).__name__, f"{type(error).__name__}: {error}")
        else:
            return True
        return False

    def note(self, where: str, remark: str) -> None:
        """Report something that people should know, although nothing failed. It is repeated only after a minute without
        it."""
        self._report(where, "", remark, harmless=True)

    def _report(self, where: str, kind: str, error: str, *, harmless: bool = False) -> None:
        now_s = self._clock()
        last_s = self._failed_s.get((where, kind))
        self._failed_s[where, kind] = now_s
        if last_s is None or now_s - last_s > _REPEAT_AFTER_S:
            self._emit(Failure(f"sensor of {where}", error.partition("\n")[0], now_s, harmless))
