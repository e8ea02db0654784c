"""A streaming query that can be stopped, changed and started again from its checkpoint, and is never left stopped."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from datetime import datetime
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint import rescale
from homeostat.checkpoint.files import files_of
from homeostat.checkpoint.lock import Hold
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.configuration import ROWS_PER_TRIGGER, STATE_PARTITIONS, TRIGGER_S, Knob, Value
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.spark.act import state_moves
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.state_moves import Move
from homeostat.spark.pipeline import require_manageable
from homeostat.spark_errors import first_line

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamWriter

Values = Mapping[Knob, Value]
Build = Callable[[Values], "DataStreamWriter"]

_PARTITIONS = "spark.sql.shuffle.partitions"
_STOP_TIMEOUT = "spark.sql.streaming.stopTimeout"
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_POOL = "spark.scheduler.pool"
_STOP_S = 30.0
# How long the end of a batch is worth waiting for: an open batch costs a run of its own before its state can move.
_BATCH_END_S, _LOOK_S = 15.0, 0.02
_RETURN_S = 120.0
_TRIES = 10
_LONGEST_PAUSE_S = 60.0
# What Spark says when a checkpoint and a query do not belong together.
_OTHER_QUERY = (
    "sources in the checkpoint offsets",
    "STATE_STORE_KEY_SCHEMA_NOT_COMPATIBLE",
    "STATE_STORE_VALUE_SCHEMA_NOT_COMPATIBLE",
    "STREAMING_STATEFUL_OPERATOR_NOT_MATCH_IN_STATE_METADATA",
)
# The session's settings are shared by all queries; a query takes a copy of them when it starts.
_session_settings = RLock()


class QueryError(HomeostatError):
    """A query did not do what it was told; the message says what it does now."""


class ManagedQuery:
    """One query and the knobs it runs with.

    `build` makes the writer for given knobs; None for a query that was handed over running, of which only the
    live knobs can be changed. `admit` tells the source a new bound on the rows of a batch, where it listens.
    """

    def __init__(
        self,
        spark: SparkSession,
        name: str,
        build: Build | None,
        checkpoint: str | Path,
        values: Values,
        *,
        admit: Callable[[int], None] | None = None,
    ) -> None:
        self.name = name
        self.values: Values = dict(values)
        self.own: frozenset[Knob] = frozenset()  # values that are the application's: shown, never set
        self.given_up = ""
        self.listens = admit is not None  # the rows per trigger change without a restart
        self.verifies = True  # state that was moved is compared with what it was
        self.query: StreamingQuery | None = None
        self.checkpoint = Checkpoint(str(checkpoint), files_of(str(checkpoint), spark))
        self._spark, self._build, self._admit = spark, build, admit
        self._lock = RLock()
        self._hold = Hold(self.checkpoint.location)
        self._wanted = False
        self._failures = 0
        self._next_try_s = 0.0

    @classmethod
    def attached(cls, spark: SparkSession, query: StreamingQuery) -> ManagedQuery:
        """A query that somebody else started."""
        managed = cls(spark, query.name or str(query.id), None, "", {})
        managed.query = query
        return managed

    @property
    def chosen(self) -> dict[Knob, Value]:
        """The values that are ours to set."""
        return {knob: value for knob, value in self.values.items() if knob not in self.own}

    @property
    def restartable(self) -> bool:
        return self._build is not None

    @property
    def stateful(self) -> bool:
        """Known once the first batch is done."""
        return self.restartable and self.checkpoint.has_state()

    @property
    def active(self) -> bool:
        return self.query is not None and bool(self.query.isActive)

    def start(self, deadline: Deadline) -> None:
        """The first start. What stops it is the user's to mend."""
        with self._lock:
            try:
                self._hold.take()
                self._launch_again()
                # A first batch may take longer than anybody waits: only one that has ended did not start.
                if not self._works_within(deadline) and not self.active:
                    raise QueryError(self._failure())
            except Exception as error:
                self._hold.release()
                raise self._does_not_start(error) from error
            self._wanted = True

    def stop(self) -> None:
        """For good, at the end of the application."""
        with self._lock:
            self._wanted = False
            self._end(self.query)
            self._hold.release()

    def why_fixed(self, spark_version: str) -> str:
        """Why its state cannot be brought to another number of partitions; empty if it can."""
        return rescale.refusal(self.checkpoint, spark_version)

    @property
    def rescale_s(self) -> float:
        """How long it would pause for other state partitions."""
        return state_moves.foretold_s(self.checkpoint, self._progress())

    def restart(self, values: Values, deadline: Deadline) -> str:
        """All of these values in one restart; if it does not come up with them, it runs with the old ones again.

        Returns what there is to say about it.
        """
        with self._lock:
            old, new = self.values, {**self.values, **values}
            move = Move(self._spark, self.checkpoint, self._progress())
            try:
                # Before anything is stopped: what cannot even be built costs nothing.
                writer = self._writer(new)
            except Exception as error:
                raise QueryError(
                    f"it cannot be built with these values: {first_line(error)}", where=self.name
                ) from error
            try:
                if self._moves_state(new):
                    deadline.at_most(_BATCH_END_S).wait_until(lambda: self._idle() or not self.active, _LOOK_S)
                with move.phase("stop"):
                    self._end(self.query)
                self._rescale(new, deadline, move)
                with move.phase("start"):
                    self._launch(writer, new)
                    self._see_it_work(deadline)
                self.values = new
            except Exception as error:
                if deadline.cancelled.is_set():
                    raise QueryError("called off, for the application ends", where=self.name) from error
                back = self._back_to(old, move)
                raise QueryError(f"{first_line(error)}; {back}", where=self.name) from error
            return move.settled()

    def admit(self, rows: int, deadline: Deadline) -> None:
        """Change the bound on the rows of a batch in the running query, and see a batch begin under it."""
        assert self._admit is not None
        knob = self._knob(ROWS_PER_TRIGGER)
        before = self.values.get(knob)
        self._admit(rows)
        told_s = time.time()
        if not deadline.wait_until(lambda: self._began_since(told_s)):
            if before is not None:
                self._admit(int(before))
            raise QueryError("no batch has begun under the new bound", where=self.name)
        self.values = {**self.values, knob: rows}

    def batch_end(self) -> Callable[[], bool]:
        """Whether the batch that is under way now has ended, to be asked again and again."""
        query, before = self.query, self._last_batch()

        def ended() -> bool:
            gone = self.query is not query or not self.active
            return gone or self._idle() or self._last_batch() != before

        return ended

    def batches(self) -> int:
        """A number that grows with every batch that ends."""
        return self._last_batch()[0]

    def tend(self) -> str:
        """To be called now and then: starts the query again if it failed. What there is to report, if anything."""
        if not self._lock.acquire(blocking=False):
            return ""
        try:
            return self._tend()
        finally:
            self._lock.release()

    def _tend(self) -> str:
        if not self._wanted or self.given_up:
            return ""
        if self.active:
            if self._last_batch()[0] >= 0:
                self._failures = 0
            return ""
        if self._next_try_s == 0:
            return self._plan_next_try(self._failure())
        if time.monotonic() < self._next_try_s:
            return ""
        self._next_try_s = 0.0
        try:
            self._launch_again()
        except Exception as error:
            return self._plan_next_try(first_line(error))
        return ""

    def _plan_next_try(self, reason: str) -> str:
        self._failures += 1
        if self._failures > _TRIES:
            self.given_up = reason
            return f"it failed {_TRIES} times in a row and stays stopped: {reason}"
        pause_s = min(_LONGEST_PAUSE_S, 2.0 ** (self._failures - 1))
        self._next_try_s = time.monotonic() + pause_s
        return f"it failed and starts again in {pause_s:g} s: {reason}"

    def _writer(self, values: Values) -> DataStreamWriter:
        if self._build is None:
            raise QueryError("it was handed over running and cannot be built again", where=self.name)
        writer = self._build(values)
        require_manageable(writer, self.checkpoint.location)
        writer = writer.queryName(self.name).option("checkpointLocation", self.checkpoint.location)
        trigger_s = values.get(self._knob(TRIGGER_S))
        if trigger_s is None:
            return writer
        return writer.trigger(processingTime=f"{round(trigger_s * 1000)} milliseconds")

    def _launch(self, writer: DataStreamWriter, values: Values) -> None:
        context = self._spark.sparkContext
        partitions = values.get(self._knob(STATE_PARTITIONS))
        # A pool of its own, so that queries of one application share the executors fairly.
        context.setLocalProperty(_POOL, self.name)
        try:
            # Spark first stops an earlier run that still hangs, and would wait for it without an end.
            with _settings(self._spark, {_PARTITIONS: partitions, _STOP_TIMEOUT: f"{_STOP_S:g}s"}):
                self.query = writer.start()
        finally:
            context.setLocalProperty(_POOL, None)  # type: ignore[arg-type]
        self._next_try_s = 0.0

    def _launch_again(self) -> None:
        """With the values it has, and as many state partitions as its checkpoint has."""
        state_moves.finish(self._spark, self.checkpoint)
        there = self.checkpoint.state_partitions()
        if there is not None:
            self.values = {**self.values, self._knob(STATE_PARTITIONS): there}
        self._launch(self._writer(self.values), self.values)

    def _works_within(self, deadline: Deadline) -> bool:
        """Whether a batch was done in time, or there is nothing to do."""
        deadline.wait_until(lambda: not self.active or self._working())
        return self.active and self._working()

    def _working(self) -> bool:
        return self._idle() or self._last_batch()[0] >= 0

    def _see_it_work(self, deadline: Deadline) -> None:
        if not self._works_within(deadline):
            raise QueryError("no batch was done in time" if self.active else self._failure())

    def _end(self, query: StreamingQuery | None) -> None:
        if query is None:
            return
        try:
            with _settings(self._spark, {_STOP_TIMEOUT: f"{_STOP_S:g}s"}):
                query.stop()
        except Exception as error:
            raise QueryError(f"it does not stop: {first_line(error)}") from error

    def _moves_state(self, values: Values) -> bool:
        """Whether these values name another number of partitions than the state in the checkpoint has."""
        wanted, there = values.get(self._knob(STATE_PARTITIONS)), self.checkpoint.state_partitions()
        return wanted is not None and there is not None and int(wanted) != there and self.checkpoint.has_state()

    def _rescale(self, values: Values, deadline: Deadline, move: Move) -> None:
        """Bring the state in the checkpoint to the number of partitions that these values name."""
        if not self._moves_state(values):
            return
        if self.checkpoint.batches().one_is_open:
            with move.phase("open batch"):
                self.finish_open_batch(deadline)
        move.rescale(int(values[self._knob(STATE_PARTITIONS)]), verify=self.verifies)

    def finish_open_batch(self, deadline: Deadline) -> None:
        """One trigger does the open batch and nothing else. With none open it would take the whole backlog.

        It leaves a snapshot of the state: whoever reads that next need not replay the changes since the last one.
        """
        with _settings(self._spark, {_CHANGELOG: "false"}):
            self._launch(self._writer(self.values).trigger(once=True), self.values)
        query = self.query
        assert query is not None
        if not query.awaitTermination(max(1, round(deadline.left_s))):
            self._end(query)
            raise QueryError("the open batch was not done in time, so its state cannot be repartitioned")

    def _back_to(self, old: Values, move: Move) -> str:
        """The old values again; what came of it."""
        deadline = Deadline.after(_RETURN_S)
        try:
            if self.active:
                self._end(self.query)
            state_moves.finish(self._spark, self.checkpoint)
            move.put_back()
            self._rescale(old, deadline, move)
            self._launch(self._writer(old), old)
            self._see_it_work(deadline)
        except Exception as error:
            if self.active:
                return "it runs as before, but has done no batch yet"
            return f"as before {self._plan_next_try(first_line(error))}"
        return "it runs as before"

    def _does_not_start(self, error: Exception) -> ConfigError:
        text = str(error)
        if any(sign in text for sign in _OTHER_QUERY):
            return ConfigError(
                f"its checkpoint {self.checkpoint.location} belongs to another query",
                where=f"query {self.name}",
                fix="give each query a checkpoint of its own, or remove this one to start from the beginning",
            )
        if not isinstance(error, ConfigError) and self.checkpoint.batches().begun >= 0:
            return ConfigError(
                f"it does not go on from its checkpoint {self.checkpoint.location}: {first_line(error)}",
                where=f"query {self.name}",
                fix="if that is of another query, give this one a checkpoint of its own",
            )
        return ConfigError(f"it does not start: {first_line(error)}", where=f"query {self.name}")

    def _failure(self) -> str:
        error = None if self.query is None else self.query.exception()
        return "it ended by itself" if error is None else first_line(error)

    def _idle(self) -> bool:
        return self.query is not None and str(self.query.status["message"]).startswith("Waiting")

    def _last_batch(self) -> tuple[int, str]:
        """The latest batch that ended in this run and when it began; -1 if there is none."""
        progress = self._progress()
        return (-1, "") if progress is None else (int(progress["batchId"]), str(progress["timestamp"]))

    def _progress(self) -> Any:
        return None if self.query is None else self.query.lastProgress

    def _began_since(self, moment_s: float) -> bool:
        began = self._last_batch()[1]
        return self._idle() or (bool(began) and datetime.fromisoformat(began).timestamp() >= moment_s)

    def _knob(self, kind: str) -> Knob:
        return Knob(kind, self.name)


@contextmanager
def _settings(spark: SparkSession, wanted: Mapping[str, str | Value | None]) -> Iterator[None]:
    """The session with these settings, None for as it is, while a query starts or stops."""
    with _session_settings:
        before = {key: spark.conf.get(key, None) for key, value in wanted.items() if value is not None}
        for key in before:
            spark.conf.set(key, str(wanted[key]))
        try:
            yield
        finally:
            for key, value in before.items():
                if value is None:
                    spark.conf.unset(key)
                else:
                    spark.conf.set(key, value)
