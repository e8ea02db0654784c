"""A query that an attached application has handed to Homeostat, so that it can be restarted with other values."""

from __future__ import annotations

from contextlib import suppress

from homeostat.core.configuration import ROWS_PER_TRIGGER, Knob
from homeostat.spark.act.managed_query import ManagedQuery


class HandedQuery(ManagedQuery):
    """The application decides when the query ends, and its code sets the limit on rows with which every run begins."""

    def begin(self) -> None:
        """Start it without waiting for its first batch. Errors are raised as Spark raises them."""
        self._fixed_in_code = frozenset({self._limit_knob})
        with self._lock:
            with suppress(OSError):  # the application may not be allowed to write beside its checkpoint
                self._hold.take()
            try:
                self._launch_again()
            except Exception:
                self._hold.release()
                raise
            self._should_run = True

    def stop(self) -> None:
        """Stop it as the application would: the session continues, and its own time limit for stopping applies."""
        with self._lock:
            self.let_go()
            if self.query is not None:
                self.query.stop()

    def let_go(self) -> None:
        """Let the query run on, and never restart it again."""
        with self._lock:
            self._should_run = False
            self._hold.release()

    @property
    def is_over(self) -> bool:
        """Whether it has ended, and Homeostat does not start it again."""
        if not self._lock.acquire(blocking=False):
            return False  # a restart is under way
        try:
            return not self.active and not self._comes_back()
        finally:
            self._lock.release()

    def _comes_back(self) -> bool:
        return self._should_run and not self.given_up and not self._ended_by_application()

    def _ended_by_application(self) -> bool:
        """Whether the application has stopped the query or the session, which is not a failure."""
        if self.spark.sparkContext._jsc is None or self.spark.sparkContext._jsc.sc().isStopped():
            return True
        return self.query is not None and not self.active and self.query.exception() is None

    def _tend(self, now_s: float) -> str:
        if not self.active and not self._retries.is_planned and self._ended_by_application():
            self.let_go()
            return ""
        remark = super()._tend(now_s)
        if self.active:
            self._keep_limit()
        return remark

    def _keep_limit(self) -> None:
        """A new run begins with the limit in the code of the application. Replace it with the chosen limit."""
        rows = self.values.get(self._limit_knob)
        if rows is not None and ROWS_PER_TRIGGER in self.bounds:
            self.live.renew_limit(int(rows))

    @property
    def _limit_knob(self) -> Knob:
        return Knob(ROWS_PER_TRIGGER, self.name)
