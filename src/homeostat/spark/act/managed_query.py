"""A streaming query that can be stopped, changed and restarted from its checkpoint, and is never left stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING

from homeostat.checkpoint import rescale
from homeostat.checkpoint.files import files_of
from homeostat.checkpoint.lock import Hold
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.configuration import STATE_PARTITIONS, Knob, Value
from homeostat.spark.act import state_moves
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.live_knobs import LiveKnobs
from homeostat.spark.act.query_errors import QueryError, start_error
from homeostat.spark.act.query_launcher import Build, QueryLauncher, Values
from homeostat.spark.act.query_run import QueryRun
from homeostat.spark.act.retries import Retries
from homeostat.spark.act.state_moves import Move
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

# How long to wait for the end of a batch before a restart. Otherwise Spark repeats the open batch, and if state is to
# be moved, the repetition needs a run of its own. A longer wait would let a batch that hangs delay the restart.
_BATCH_END_S, _LOOK_S = 15.0, 0.02
# Batches must show a change without a restart within this share of a command's time. The rest is kept for a restart.
_SHARE_TO_SEE = 0.6
# How long a query may take to come back with its old values after a change failed.
_RETURN_S = 120.0


# The minimum and the maximum value, by kind of knob.
Bounds = Mapping[str, tuple[Value, Value]]


class ManagedQuery:
    """One query and the values of its knobs.

    `build` makes the writer for given values. It is None for a query that the application started itself: only the live
    knobs of such a query can change. In an `attached` application, these change only within `bounds`.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        build: Build | None,
        checkpoint: str | Path,
        values: Values,
        bounds: Bounds | None = None,
    ) -> None:
        self.name = name
        self.values: Values = dict(values)
        self.set_by_application: frozenset[Knob] = frozenset()  # shown, never changed
        self.bounds: Bounds = bounds or {}
        self.attached = bounds is not None
        self.longest_trigger_s: float | None = None  # if the objective has no latency; None if the user chose none
        self._fixed_in_code: frozenset[Knob] = frozenset()  # a restart resets them to the values in the code
        self.verifies = True  # moved state is compared with the original
        self.checkpoint = Checkpoint(str(checkpoint), files_of(str(checkpoint), spark))
        self.spark = spark
        self._launcher = QueryLauncher(spark, name, build, self.checkpoint.location)
        self._run = QueryRun()
        self.live = LiveKnobs(spark, self._run, shared=self.attached)
        self._retries = Retries()
        self._lock = RLock()
        self._hold = Hold(self.checkpoint.location)
        self._should_run = False
        self._state_knob = Knob(STATE_PARTITIONS, name)

    @classmethod
    def attach(
        cls, spark: SparkSession, query: StreamingQuery, name: str = "", bounds: Bounds | None = None
    ) -> ManagedQuery:
        """A query that the application started itself."""
        managed = cls(spark, name or query.name or str(query.id), None, "", {}, bounds or {})
        managed._run.query = query
        return managed

    @property
    def query(self) -> StreamingQuery | None:
        """Spark's own handle of the current run."""
        return self._run.query

    @property
    def active(self) -> bool:
        return self._run.active

    @property
    def waits_for(self) -> str:
        """The activity of the current run, from Spark; empty if it has finished a batch or has nothing to do."""
        return self._run.waits_for

    @property
    def given_up(self) -> str:
        """Why the query stays stopped; empty while it runs or will be restarted."""
        return self._retries.gave_up

    @property
    def chosen(self) -> dict[Knob, Value]:
        """The values that Homeostat may change."""
        return {knob: value for knob, value in self.values.items() if knob not in self.set_by_application}

    @property
    def restartable(self) -> bool:
        return self._launcher.can_start

    @property
    def stateful(self) -> bool:
        """Known after the first batch."""
        return self.restartable and self.checkpoint.has_state()

    @property
    def rescale_s(self) -> float:
        """How long the query would pause to change its state partitions."""
        return state_moves.predicted_s(self.checkpoint, self._run.progress)

    def why_fixed(self, spark_version: str) -> str:
        """Why the number of state partitions cannot change; empty if it can."""
        return rescale.refusal(self.checkpoint, spark_version)

    def start(self, deadline: Deadline) -> None:
        """The first start. If it fails, the user must fix the cause."""
        with self._lock:
            try:
                self._hold.take()
                self._launch_again()
                # A first batch may outlast the deadline. The start has failed only if the query has ended.
                if not self._run.works_within(deadline) and not self.active:
                    raise QueryError(self._run.why_ended())
            except Exception as error:
                self._hold.release()
                raise start_error(self.name, self.checkpoint, error) from error
            self._should_run = True

    def stop(self) -> None:
        """Stop for good, at the end of the application."""
        with self._lock:
            self._should_run = False
            self._launcher.stop(self.query, for_good=True)
            self._hold.release()

    def restart(self, values: Values, deadline: Deadline) -> str:
        """Change all of these values in one restart. If that fails, run with the old values again.

        Returns remarks for the receipt.
        """
        with self._lock:
            old, new = self.values, {**self.values, **values}
            move = Move(self.spark, self.checkpoint, self._run.progress)
            try:
                # Build before anything stops, so that the query keeps running if it cannot be built.
                writer = self._launcher.writer(new)
            except Exception as error:
                raise QueryError(
                    f"cannot build the query with these values: {first_line(error)}", where=self.name
                ) from error
            try:
                # After a pause, no batch is open when the query stops. Without one, Spark repeats the open batch.
                is_paused = self.live.pause(self.checkpoint, deadline.at_most(_BATCH_END_S))
                if not is_paused and self._moves_state(new):
                    deadline.at_most(_BATCH_END_S).wait_until(lambda: self._run.idle or not self.active, _LOOK_S)
                with move.phase("stop"):
                    self._launcher.stop(self.query)
                self._rescale(new, deadline, move)
                with move.phase("start"):
                    self._launch(writer, new)
                    self._run.require_work(deadline)
                self.values = new
            except Exception as error:
                if deadline.cancelled.is_set():
                    raise QueryError("cancelled because the application is stopping", where=self.name) from error
                outcome = self._back_to(old, move)
                raise QueryError(f"{first_line(error)}; {outcome}", where=self.name) from error
            return move.settle()

    def change_live(self, values: Values, deadline: Deadline) -> str:
        """Change rows per trigger and trigger interval while the query runs. If its batches do not show the change,
        restart the query with the new values, if that is possible. Returns remarks for the receipt."""
        with self._lock:
            before = {knob.kind: self.values[knob] for knob in values if knob in self.values}
            new = {knob.kind: value for knob, value in values.items()}
            try:
                remark = self.live.change(new, before, deadline.at_most(deadline.left_s * _SHARE_TO_SEE))
            except QueryError as error:
                if not self.restartable or self._fixed_in_code & values.keys() or deadline.left_s <= 0:
                    raise QueryError(error.what, where=self.name) from error
                return f"{error.what}, so the query was restarted; {self.restart(values, deadline)}".rstrip("; ")
            self.values = {**self.values, **values}
            return remark

    def batch_end(self) -> Callable[[], bool]:
        """A function that tells whether the batch that runs now has ended."""
        return self._run.batch_end()

    def batches(self) -> int:
        """A number that grows with every batch that ends."""
        return self._run.last_batch()[0]

    def tend(self) -> str:
        """Restart the query if it failed. Call this regularly. Returns a sentence to report; empty if there is none."""
        if not self._lock.acquire(blocking=False):
            return ""
        try:
            return self._tend(time.monotonic())
        finally:
            self._lock.release()

    def finish_open_batch(self, deadline: Deadline) -> None:
        """Run only the open batch. Call this only if one is open: otherwise Spark processes the whole backlog."""
        self._run.query = query = self._launcher.start_once(self.values)
        self._retries.note_start()
        if not query.awaitTermination(max(1, round(deadline.left_s))):
            self._launcher.stop(query)
            raise QueryError("the open batch did not finish in time, so its state cannot be repartitioned")

    def _tend(self, now_s: float) -> str:
        if not self._should_run or self.given_up:
            return ""
        if self.active:
            if self.batches() >= 0:
                self._retries.note_batch(now_s)
            return ""
        if not self._retries.is_planned:
            return self._retries.plan(self._run.why_ended(), now_s)
        if not self._retries.due(now_s):
            return ""
        self._retries.note_start()
        try:
            self._launch_again()
        except Exception as error:
            return self._retries.plan(first_line(error), time.monotonic())
        return ""

    def _launch(self, writer: DataStreamWriter, values: Values) -> None:
        self._run.query = self._launcher.start(writer, values)
        self._retries.note_start()

    def _launch_again(self) -> None:
        """Start with the current values, and as many state partitions as the checkpoint has."""
        state_moves.finish(self.spark, self.checkpoint)
        partitions = self.checkpoint.state_partitions()
        if partitions is not None:
            self.values = {**self.values, self._state_knob: partitions}
        self._launch(self._launcher.writer(self.values), self.values)

    def _moves_state(self, values: Values) -> bool:
        """Whether these values change the number of partitions of the state in the checkpoint."""
        desired, present = values.get(self._state_knob), self.checkpoint.state_partitions()
        if desired is None or present is None:
            return False
        return int(desired) != present and self.checkpoint.has_state()

    def _rescale(self, values: Values, deadline: Deadline, move: Move) -> None:
        """Change the number of state partitions in the checkpoint to the one in these values."""
        if not self._moves_state(values):
            return
        if self.checkpoint.batches().one_is_open:
            with move.phase("open batch"):
                self.finish_open_batch(deadline)
        move.rescale(int(values[self._state_knob]), verify=self.verifies)

    def _back_to(self, old: Values, move: Move) -> str:
        """Run with the old values again. Returns the result as part of a sentence."""
        deadline = Deadline.after(_RETURN_S)
        try:
            if self.active:
                self._launcher.stop(self.query)
            state_moves.finish(self.spark, self.checkpoint)
            move.put_back()
            self._rescale(old, deadline, move)
            self._launch(self._launcher.writer(old), old)
            self._run.require_work(deadline)
        except Exception as error:
            if self.active:
                return "the query runs with its old values, but has finished no batch yet"
            return f"with its old values {self._retries.plan(first_line(error), time.monotonic())}"
        return "the query runs with its old values again"
