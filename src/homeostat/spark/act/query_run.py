"""The current run of a streaming query: whether it is active, idle, and which batch it finished last."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.query_errors import QueryError
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_IDLE = "Waiting"  # how Spark's status message begins between two batches


class QueryRun:
    """`query` is the latest run, or None before the first one."""

    def __init__(self, query: StreamingQuery | None = None) -> None:
        self.query = query

    @property
    def active(self) -> bool:
        return self.query is not None and bool(self.query.isActive)

    @property
    def idle(self) -> bool:
        """Whether it waits for data or for the next trigger."""
        return self.query is not None and str(self.query.status["message"]).startswith(_IDLE)

    @property
    def between_triggers(self) -> bool:
        """Whether no trigger is active, so that the next batch is still to be planned."""
        return self.idle and self.query is not None and not self.query.status["isTriggerActive"]

    @property
    def has_nothing_to_do(self) -> bool:
        """Whether the latest trigger found no rows."""
        return self.between_triggers and self.query is not None and not self.query.status["isDataAvailable"]

    @property
    def progress(self) -> Any:
        """Spark's report on the latest batch; None if no batch has ended in this run."""
        return None if self.query is None else self.query.lastProgress

    @property
    def waits_for(self) -> str:
        """The activity of the run, from Spark; empty if it has finished a batch or has nothing to do."""
        if self.query is None:
            return "not started yet"
        return "" if self._works() else str(self.query.status["message"])

    def why_ended(self) -> str:
        """Why the run is over, in one line."""
        error = None if self.query is None else self.query.exception()
        return "the query ended without an error" if error is None else first_line(error)

    def last_batch(self) -> tuple[int, str]:
        """The number of the latest batch that ended in this run, and when it began; -1 if there is none."""
        progress = self.progress
        return (-1, "") if progress is None else (int(progress["batchId"]), str(progress["timestamp"]))

    def works_within(self, deadline: Deadline) -> bool:
        """Wait until it has finished a batch or has nothing to do. False if it ended first, or time ran out."""
        deadline.wait_until(lambda: not self.active or self._works())
        return self.active and self._works()

    def require_work(self, deadline: Deadline) -> None:
        if not self.works_within(deadline):
            raise QueryError("no batch finished in time" if self.active else self.why_ended())

    def batch_end(self) -> Callable[[], bool]:
        """A function that tells whether the batch that runs now has ended."""
        query, before = self.query, self.last_batch()

        def has_ended_since() -> bool:
            has_ended = self.query is not query or not self.active
            return has_ended or self.idle or self.last_batch() != before

        return has_ended_since

    def _works(self) -> bool:
        return self.idle or self.last_batch()[0] >= 0
