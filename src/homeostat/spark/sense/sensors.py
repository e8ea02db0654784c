"""What is seen of a running application: batches as they end, and the one under way. It looks and never blocks."""

from __future__ import annotations

import json
import math
import queue
import threading
import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING

from homeostat.core.events import Event, Failure, Observed, UnderWay
from homeostat.core.observation import NAN, Balance, Observation, StateSample, TaskSample, WorkerSample
from homeostat.core.topology import Topology
from homeostat.spark.sense.jobs import JobBook, read_stages
from homeostat.spark.sense.known_queries import QueryBook, Run
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.progress import Arrivals, Progress, arrivals, arrived_rows, flows, idle_flows, read_progress
from homeostat.spark.sense.query_handle import Listener, QueryHandle, stage_graphs
from homeostat.spark.sense.rest_answers import StageAttempt
from homeostat.spark.sense.rest_client import RestClient, SensorError
from homeostat.spark.sense.stage_names import RanStage
from homeostat.spark.sense.state_stores import StoreSettings, store_settings
from homeostat.spark.sense.task_columns import StageRun, task_sample, worker_sample

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

POLL_S = 1.0
_QUIET_S = 5.0  # after which Spark is asked whether a batch was missed
_YOUNG_S = 2.0  # a batch is not looked at before: it is about to end, or too young to say anything
_WORKERS_S = 3.0  # so long the executors count as known, unless a task ran on another one
_WAITING_AT_MOST = 1_000
_GRAPHS_KEPT = 500
_TOLD_AGAIN_S = 60.0
_JOIN_S = 5.0


@dataclass(frozen=True, slots=True)
class _Idle:
    run: str
    at_s: float


def _nobody(*told: object) -> None:
    """Nobody wants to know."""


def _nothing(*asked: object) -> None:
    """Nobody looked at the keys."""


def executor_news(gone: Iterable[str], new: Iterable[str]) -> str:
    told = [f"executor {worker} was lost" for worker in sorted(gone)]
    return ", ".join(told + [f"executor {worker} was added" for worker in sorted(new)])


class Sensors:
    """Puts events about the queries into `emit`, from threads of its own.

    Progress comes from a listener (given `spark`) and, where that missed a batch, from the query; tasks, stages and
    executors from the REST API; operators from the driver, or from `graph_of`. What cannot be read is unknown.
    `on_change` is told when the plan is first seen or changes, `on_executors` which executors are gone and which new.
    Those that are `leaving` are gone: they take no more tasks, though it may be a while until their processes end.
    `balance_of` tells what is known of the keys of a query, given the tasks of a batch; it is asked after every batch.
    """

    def __init__(
        self,
        rest: RestClient,
        queries: Callable[[], Sequence[QueryHandle]],
        emit: Callable[[Event], None],
        *,
        spark: SparkSession | None = None,
        graph_of: Callable[[int], StageGraph | None] | None = None,
        on_change: Callable[[str], None] = _nobody,
        on_executors: Callable[[frozenset[str], frozenset[str]], None] = _nobody,
        leaving: Callable[[], Collection[str]] = tuple,
        balance_of: Callable[[str, Topology | None, Mapping[str, TaskSample]], Balance | None] = _nothing,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._rest, self._emit = rest, emit
        self._on_executors, self._leaving, self._clock = on_executors, leaving, clock
        self._spark = spark
        self._balance_of, self._stores = balance_of, StoreSettings()
        self._listener = Listener(spark, self._hear_progress, self._hear_idle) if spark is not None else None
        self._inbox: queue.Queue[str | _Idle] = queue.Queue(_WAITING_AT_MOST)
        self._jobs = JobBook(rest)
        self._graph_of = graph_of
        self._quiet_s = _QUIET_S if spark is not None else POLL_S
        self._graphs: dict[int, StageGraph] = {}
        self._book = QueryBook(queries, on_change)
        self._workers, self._workers_s = WorkerSample(), -math.inf
        self._under_way: UnderWay | None = None
        self._answering = False
        self._failed_s: dict[tuple[str, str], float] = {}
        self._since_s = clock()
        self._stopping = threading.Event()
        self._threads = [
            threading.Thread(target=target, name=f"homeostat {name}", daemon=True)
            for name, target in (("batches", self._read_batches), ("polling", self._poll))
        ]

    def start(self) -> None:
        self._guarded("listener", self._listen)
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        self._stopping.set()
        if self._listener is not None:
            self._guarded("listener", self._listener.stop)
        for thread in self._threads:
            if thread.is_alive():
                thread.join(_JOIN_S)

    def topology(self) -> Topology | None:
        """None until the tasks of a batch were seen."""
        return self._book.topology

    def workers(self) -> WorkerSample:
        """The executors that were alive when last asked."""
        return self._workers

    @property
    def silent_s(self) -> float:
        """For how long the REST API has not answered."""
        return self._clock() - max(self._workers_s, self._since_s)

    def under_way(self) -> UnderWay | None:
        """The batch that runs now, of several the one that runs longest."""
        return self._under_way

    # Listening

    def _listen(self) -> None:
        if self._spark is not None and self._listener is not None:
            self._graph_of = stage_graphs(self._spark)
            self._listener.start()
            conf, master = self._spark.conf, str(self._spark.sparkContext.master)
            self._stores = store_settings(lambda name, default: str(conf.get(name, default)), master)

    def _hear_progress(self, progress: str) -> None:
        self._put(progress)

    def _hear_idle(self, run: str) -> None:
        self._put(_Idle(run, self._clock()))

    def _put(self, heard: str | _Idle) -> None:
        try:
            self._inbox.put_nowait(heard)
        except queue.Full:
            return  # the query itself remembers its batches, see _fill

    # Batches that ended

    def _read_batches(self) -> None:
        heard_s = time.monotonic()
        while not self._stopping.is_set():
            try:
                heard = self._inbox.get(timeout=POLL_S)
            except queue.Empty:
                if time.monotonic() - heard_s > self._quiet_s:
                    heard_s = time.monotonic()
                    self._guarded("progress", self._fill_all)
                continue
            heard_s = time.monotonic()
            self._guarded("progress", partial(self._take, heard))

    def _take(self, heard: str | _Idle) -> None:
        if isinstance(heard, _Idle):
            self._idle(heard)
            return
        progress = read_progress(json.loads(heard))
        run = self._book.run(progress.run)
        if run is None or progress.batch <= run.last_batch:
            return
        if progress.batch > run.last_batch + 1:
            self._fill(run, before=progress.batch)
        self._observe(run, progress)

    def _fill_all(self) -> None:
        for run in self._book.running():
            self._fill(run)

    def _fill(self, run: Run, before: int | None = None) -> None:
        """Take the batches that the listener missed from what the query remembers, but none from before our time."""
        missed: list[Progress] = []
        for remembered in run.handle.recent_progress():
            progress = read_progress(remembered)
            known = progress.run != run.handle.run_id or progress.batch <= run.last_batch
            if known or progress.ended_s < self._since_s:
                break
            if before is None or progress.batch < before:
                missed.append(progress)
        for progress in reversed(missed):
            if not self._stopping.is_set():
                self._observe(run, progress)

    def _observe(self, run: Run, progress: Progress) -> None:
        tasks: dict[str, TaskSample] = {}
        self._guarded("tasks", lambda: tasks.update(self._tasks(run, progress)))
        workers = self._workers
        now = self._arrivals(run, progress)
        sample = flows(
            progress,
            query=run.handle.name,
            trigger_s=run.handle.trigger_s,
            names=self._book.source_names(run, len(progress.sources)),
            now=now,
            before=run.query.arrived,
        )
        run.query.arrived, run.query.latest = now, progress
        run.last_batch = progress.batch
        states = self._states(progress, len(workers.ids))
        balance = self._balance_of(run.handle.name, self._book.topology, tasks)
        at_s, seconds, batch = progress.ended_s, progress.seconds, progress.batch
        keys = {f"{run.handle.name}/{name}": load for name, load in progress.keys.items()}
        self._tell(run, Observation(at_s, seconds, batch, sample, tasks, workers, progress.run, states, balance, keys))
        self._jobs.forget(progress.run, progress.batch)

    def _idle(self, idle: _Idle) -> None:
        """Nothing new arrived since the last batch, or since the last time nothing had."""
        run = self._book.run(idle.run)
        if run is None:
            return
        if run.last_s is None:
            run.last_s = idle.at_s
            return
        latest, arrived = run.query.latest, run.query.arrived
        names = self._book.source_names(run, len(latest.sources) if latest else 1)
        held_back = any(source.holds_back for source in run.handle.sources)
        if arrived is not None and not held_back:
            run.query.arrived = replace(arrived, at_s=idle.at_s)
        run.idle += 1
        sample = idle_flows(run.handle.name, names, run.handle.trigger_s, NAN if held_back else 0.0)
        # An idle trigger has no batch number, so it gets a count of its own.
        self._tell(run, Observation(idle.at_s, 0.0, run.idle, sample, workers=self._workers, run=f"{idle.run}/idle"))

    def _tell(self, run: Run, seen: Observation) -> None:
        """It spans what passed since the one before; the first its own duration."""
        span_s = seen.span_s if run.last_s is None else seen.at_s - run.last_s
        run.last_s = seen.at_s if run.last_s is None else max(seen.at_s, run.last_s)
        self._emit(Observed(replace(seen, span_s=span_s)))

    def _states(self, progress: Progress, workers: int) -> dict[str, StateSample]:
        return {
            name: replace(state, limits=self._stores.limits(state.backend, workers))
            for name, state in progress.states.items()
        }

    def _arrivals(self, run: Run, progress: Progress) -> Arrivals:
        """What had arrived when the batch ended where the source can be asked, else what Spark saw when it began."""
        rows = arrived_rows(run.handle.sources, progress, progress.ended_s)
        return Arrivals(progress.ended_s, rows) if all(row == row for row in rows) else arrivals(progress)

    # Stages and tasks

    def _tasks(self, run: Run, progress: Progress) -> dict[str, TaskSample]:
        """Unknown while the REST API is silent: a batch is not kept waiting until it answers again."""
        if not self._answering:
            return {}
        stages = self._read_stages(run, progress)
        if {task.executor for stage in stages for task in stage.tasks} - set(self._workers.ids):
            self._see_workers()
        whole = any(source.rows != 0 for source in progress.sources)
        names = self._book.name(run, [stage.stage for stage in stages], whole=whole)
        found: dict[str, list[StageRun]] = {}
        for stage in stages:
            if stage.stage.id in names:
                found.setdefault(names[stage.stage.id], []).append(stage)
        return {component: task_sample(ran, self._workers) for component, ran in found.items()}

    def _read_stages(self, run: Run, progress: Progress) -> tuple[StageRun, ...]:
        self._jobs.follow()
        jobs = self._jobs.of_batch(progress.run, progress.batch)
        if not jobs and any(source.rows != 0 for source in progress.sources):
            self._jobs.list_anew()
            jobs = self._jobs.of_batch(progress.run, progress.batch)
        self._book.learn_plan(run)
        return read_stages(self._rest, jobs, self._graph)

    def _graph(self, stage: int) -> StageGraph | None:
        if self._graph_of is None:
            return None
        if stage not in self._graphs and (graph := self._graph_of(stage)) is not None:
            self._graphs[stage] = graph
            for old in list(self._graphs)[:-_GRAPHS_KEPT]:
                self._graphs.pop(old, None)
        return self._graphs.get(stage)

    # Polling

    def _poll(self) -> None:
        while not self._stopping.is_set():
            if not self._answering or self._clock() - self._workers_s >= _WORKERS_S:
                self._answering = self._guarded("executors", self._see_workers)
            self._guarded("batch under way", self._see_under_way)
            self._stopping.wait(POLL_S)

    def _see_workers(self) -> None:
        seen = worker_sample(self._rest.executors(), self._leaving())
        self._workers_s = self._clock()
        before, self._workers = self._workers, seen
        if before.ids and before.ids != seen.ids:
            gone, new = set(before.ids) - set(seen.ids), set(seen.ids) - set(before.ids)
            self._on_executors(frozenset(gone), frozenset(new))

    def _see_under_way(self) -> None:
        grown = [run for run in self._book.running() if run.last_s is None or self._clock() - run.last_s >= _YOUNG_S]
        if self._answering and grown:
            self._jobs.follow()
        running = [seen for run in grown if (seen := self._running(run)) is not None]
        self._under_way = min(running, key=lambda seen: seen.since_s, default=None)
        for seen in running:
            self._emit(seen)

    def _running(self, run: Run) -> UnderWay | None:
        run_id = run.handle.run_id
        batch = self._jobs.newest_batch(run_id)
        if not self._answering or batch is None or batch <= run.last_batch:
            return self._without_jobs(run)
        run.busy_s = None
        self._book.learn_plan(run)
        jobs = self._jobs.of_batch(run_id, batch)
        begun: list[tuple[RanStage, StageAttempt]] = []
        for job in jobs:
            for number in job.stages:
                for attempt in [attempt for attempt in self._rest.stage(number) if attempt.ran][-1:]:
                    begun.append((RanStage(number, job.id, self._graph(number)), attempt))
        names = self._book.name(run, [stage for stage, _ in begun], whole=False)
        if not begun or batch <= run.last_batch:
            return None  # it ended meanwhile
        stage, attempt = begun[-1]
        return UnderWay(
            run_id,
            batch,
            since_s=min(job.submitted_s for job in jobs),
            at_s=self._clock(),
            component=names.get(stage.id, ""),
            tasks_done=attempt.tasks_done,
            tasks=attempt.tasks,
            pending_rows=self._pending(run),
        )

    def _without_jobs(self, run: Run) -> UnderWay | None:
        """A batch that is being planned, whose sink hangs before it asks Spark for anything, or that REST hides."""
        batch = run.next_batch
        if not run.handle.busy() or batch != run.next_batch:
            run.busy_s = None
            return None
        now_s = self._clock()
        run.busy_s = now_s if run.busy_s is None else run.busy_s
        return UnderWay(run.handle.run_id, batch, run.busy_s, now_s, pending_rows=self._pending(run))

    def _pending(self, run: Run) -> float:
        """Rows that have arrived and are not in a finished batch."""
        latest = run.query.latest
        if latest is None:
            return NAN
        rows = arrived_rows(run.handle.sources, latest, self._clock())
        return sum(arrived - taken.end for arrived, taken in zip(rows, latest.sources, strict=True))

    # Whatever fails here is told, once, and goes no further

    def _guarded(self, where: str, work: Callable[[], object]) -> bool:
        try:
            work()
        except SensorError as error:
            self._answering = False  # until the next poll is answered
            self._fail(where, error.kind, error.line)
        except Exception as error:
            self._fail(where, type(error).__name__, f"{type(error).__name__}: {error}")
        else:
            return True
        return False

    def _fail(self, where: str, kind: str, error: str) -> None:
        now_s = self._clock()
        told_s = self._failed_s.get((where, kind))
        self._failed_s[where, kind] = now_s
        if told_s is None or now_s - told_s > _TOLD_AGAIN_S:
            self._emit(Failure(f"sensor of {where}", error.partition("\n")[0], now_s))
