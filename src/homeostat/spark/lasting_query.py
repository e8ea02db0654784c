"""A query handle for the application. It stays valid when Homeostat restarts the query."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

    from homeostat.spark.act.handed_query import HandedQuery

# How long to wait for one run before checking whether another has followed it.
_LOOK_S = 0.5


class LastingQuery:
    """Takes the place of Spark's StreamingQuery, because each restart creates a new one.

    Attributes that are not defined here, such as `status` and `lastProgress`, come from the current run.
    """

    def __init__(self, handed: HandedQuery) -> None:
        self._handed = handed

    @property
    def name(self) -> str:
        return self._handed.name

    @property
    def isActive(self) -> bool:  # noqa: N802 - as Spark calls it
        """Whether it runs, or is about to run again after a restart or a failure."""
        return not self._handed.is_over

    def stop(self) -> None:
        """Stop it for good."""
        self._handed.stop()

    def awaitTermination(self, timeout: float | None = None) -> bool | None:  # noqa: N802 - as Spark calls it
        """Wait until it is stopped for good. If its last run failed, and Homeostat does not restart it, raise the error
        of that run. With a timeout, return whether it ended in time."""
        until_s = None if timeout is None else time.monotonic() + timeout
        while self.isActive:
            left_s = _LOOK_S if until_s is None else until_s - time.monotonic()
            if left_s <= 0:
                return False
            self._wait(min(_LOOK_S, left_s))
        self._run.awaitTermination()  # raises the error of the last run, if it had one
        return None if timeout is None else True

    def __getattr__(self, name: str) -> Any:
        return getattr(self._run, name)

    def _wait(self, seconds: float) -> None:
        if self._run.isActive:
            with suppress(Exception):  # the end of a run is not yet the end of the query
                self._run.awaitTermination(max(1, round(seconds)))
        else:
            time.sleep(seconds)

    @property
    def _run(self) -> StreamingQuery:
        query = self._handed.query
        assert query is not None, "it is made after the first start"
        return query
