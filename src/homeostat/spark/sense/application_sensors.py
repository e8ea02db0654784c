"""Watches a running application: batches as they end, and the current one. It only reads and never blocks a query."""

from __future__ import annotations

import json
import queue
import threading
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING

from homeostat.core.events import Event, UnderWay
from homeostat.core.observation import Balance, TaskSample, WorkerSample
from homeostat.core.topology import Topology
from homeostat.spark.clocks import STEADY
from homeostat.spark.sense.batches_under_way import BatchesUnderWay
from homeostat.spark.sense.ended_batches import BalanceReader, EndedBatches, IdleTrigger
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook
from homeostat.spark.sense.query_handle import Listener, QueryHandle, stage_graphs
from homeostat.spark.sense.source_watch import LOOK_EVERY_S, SourceWatch
from homeostat.spark.sense.stage_reader import GraphReader, StageReader
from homeostat.spark.sense.state_stores import store_settings
from homeostat.spark.sense.status_source import StatusSource

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 1.0  # a choice: a batch that hangs shows within seconds; each poll costs the driver a few requests
_QUIET_S = 5.0  # a choice: after so long without an event, check whether the listener missed a batch
_LARGEST_INBOX = 1_000  # events; those that do not fit are found again in the query's own reports
_JOIN_S = 5.0  # a choice: longer than a request takes by its usual limit


def _ignore_change(reason: str) -> None:
    """The default for `on_change`."""


def _ignore_executors(lost: frozenset[str], new: frozenset[str]) -> None:
    """The default for `on_executors`."""


def _no_balance(query: str, topology: Topology | None, tasks: Mapping[str, TaskSample]) -> Balance | None:
    """The default for `balance_of`."""
    return None


class Sensors:
    """Passes events about the queries to `emit`, from its own threads.

    With `spark`, progress comes from a listener, and operators of stages from the driver. Otherwise progress comes from
    the queries' handles and operators from `graph_of`. Tasks, stages and executors always come from `status`. A value
    that cannot be read is unknown (NaN, or left out).

    `on_change` gets a reason when the plan is first known and when it changes. `on_executors` gets the executors that
    are gone and those that are new; executors that are `leaving` count as gone. `balance_of` is called after every
    batch and returns what is known about how evenly the keys of the query are spread. `clock` is the time for all
    events, and `steady_s` converts times of Spark's clock into it.
    """

    def __init__(
        self,
        status: StatusSource,
        queries: Callable[[], Sequence[QueryHandle]],
        emit: Callable[[Event], None],
        *,
        spark: SparkSession | None = None,
        graph_of: GraphReader | None = None,
        on_change: Callable[[str], None] = _ignore_change,
        on_executors: Callable[[frozenset[str], frozenset[str]], None] = _ignore_executors,
        leaving: Callable[[], Collection[str]] = tuple,
        balance_of: BalanceReader = _no_balance,
        clock: Callable[[], float] = STEADY.now_s,
        steady_s: Callable[[float], float] = STEADY.from_time_of_day,
    ) -> None:
        self._spark, self._clock = spark, clock
        self._listener = Listener(spark, self._put, self._hear_idle) if spark is not None else None
        self._inbox: queue.Queue[str | IdleTrigger] = queue.Queue(_LARGEST_INBOX)
        self._quiet_s = _QUIET_S if spark is not None else POLL_S
        self._book = QueryBook(queries, on_change)
        self._guard = GuardedWork(emit, clock)
        self._executors = ExecutorWatch(status, clock, on_executors, leaving)
        self._stages = StageReader(status, self._book, self._executors, self._guard, graph_of)
        self.sources = sources = SourceWatch(self._book, self._guard, emit, clock)
        self._ended = EndedBatches(
            self._book, self._stages, self._executors, self._guard, balance_of, emit, clock, steady_s, sources
        )
        self._under_way = BatchesUnderWay(self._book, self._stages, self._guard, emit, clock, steady_s, sources)
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=f"homeostat {name}", daemon=True)
            for name, target in (
                ("batches", self._read_batches),
                ("polling", self._poll),
                ("sources", self._ask_sources),
            )
        ]

    def start(self) -> None:
        self._guard.run("listener", self._listen)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        self._ended.stopped = True
        if self._listener is not None:
            self._guard.run("listener", self._listener.stop)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_JOIN_S)

    def topology(self) -> Topology | None:
        """None until the tasks of a batch have been read."""
        return self._book.topology

    def workers(self) -> WorkerSample:
        """The executors that were alive when last read."""
        return self._executors.workers

    @property
    def silent_s(self) -> float:
        """For how long Spark has not answered."""
        return self._executors.silent_s

    def under_way(self) -> UnderWay | None:
        """The batch that runs now. If several do, the one that began first."""
        return self._under_way.longest

    def _listen(self) -> None:
        if self._spark is not None and self._listener is not None:
            self._stages.graph_of = stage_graphs(self._spark)
            self._listener.start()
            conf, master = self._spark.conf, str(self._spark.sparkContext.master)
            self._ended.stores = store_settings(lambda name, default: str(conf.get(name, default)), master)
            self._guard.run("driver", partial(self._ended.surroundings.look_inside, self._spark))

    def _hear_idle(self, run: str) -> None:
        self._put(IdleTrigger(run, self._clock()))

    def _put(self, event: str | IdleTrigger) -> None:
        try:
            self._inbox.put_nowait(event)
        except queue.Full:
            return  # Spark keeps the progress of recent batches: catch_up reads it

    def _read_batches(self) -> None:
        last_s = time.monotonic()
        while not self._stopping.is_set():
            try:
                event = self._inbox.get(timeout=POLL_S)
            except queue.Empty:
                if time.monotonic() - last_s > self._quiet_s:
                    last_s = time.monotonic()
                    self._guard.run("progress", self._ended.catch_up)
                continue
            last_s = time.monotonic()
            self._guard.run("progress", partial(self._take, event))

    def _take(self, event: str | IdleTrigger) -> None:
        if isinstance(event, IdleTrigger):
            self._ended.on_idle(event)
        else:
            self._ended.on_progress(json.loads(event))

    def _ask_sources(self) -> None:
        while not self._stopping.wait(LOOK_EVERY_S):
            self._guard.run("sources", self.sources.look)

    def _poll(self) -> None:
        while not self._stopping.is_set():
            if not self._guard.spark_answers or not self._executors.fresh:
                self._guard.spark_answers = self._guard.run("executors", self._executors.read)
            self._guard.run("batch under way", self._under_way.look)
            self._stopping.wait(POLL_S)
