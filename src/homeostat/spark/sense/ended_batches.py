"""Batches that ended and triggers without data, as observations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from homeostat.core.events import Event, Observed
from homeostat.core.observation import NAN, Balance, Observation, StateSample, TaskSample
from homeostat.core.topology import Topology
from homeostat.spark.sense.executor_watch import ExecutorWatch
from homeostat.spark.sense.guarded_work import GuardedWork
from homeostat.spark.sense.known_queries import QueryBook, QueryRun
from homeostat.spark.sense.progress import (
    Arrivals,
    Json,
    Progress,
    arrivals,
    arrived_rows,
    flows,
    idle_flows,
    read_progress,
    row_shares,
)
from homeostat.spark.sense.source_watch import SourceWatch
from homeostat.spark.sense.stage_reader import BatchTasks, StageReader
from homeostat.spark.sense.state_stores import StoreSettings
from homeostat.spark.sense.surroundings import Around, Surroundings

BalanceReader = Callable[[str, Topology | None, Mapping[str, TaskSample]], Balance | None]

# The shortest span of an observation. Spark's clock has a resolution of a millisecond.
_LEAST_SPAN_S = 0.001


@dataclass(frozen=True, slots=True)
class IdleTrigger:
    """A trigger of this run that found no new rows."""

    run: str
    at_s: float


class EndedBatches:
    """Emits one observation per batch, in order, even for batches that the listener missed.

    Batches that ended before this object was created are left out. `stores` holds the settings of the state stores.
    `surroundings` looks at the driver and its host. `clipped` counts observations whose end, by Spark's clock, was not
    after that of the one before, or was in the future.
    """

    def __init__(
        self,
        queries: QueryBook,
        stages: StageReader,
        executors: ExecutorWatch,
        guard: GuardedWork,
        balance_of: BalanceReader,
        emit: Callable[[Event], None],
        clock: Callable[[], float],
        steady_s: Callable[[float], float],
        sources: SourceWatch | None = None,
    ) -> None:
        self._sources = sources
        self._queries, self._stages, self._executors, self._guard = queries, stages, executors, guard
        self._balance_of, self._emit, self._clock, self._steady_s = balance_of, emit, clock, steady_s
        self._since_s = clock()
        self.clipped = 0
        self.stores = StoreSettings()
        self.surroundings = Surroundings(executors)
        self.stopped = False

    def on_progress(self, report: Json) -> None:
        """Process a progress report, after any batches that were missed before it."""
        progress = self._read(report)
        run = self._queries.run(progress.run)
        if run is None or progress.batch <= run.last_batch:
            return
        if progress.batch > run.last_batch + 1:
            self._catch_up(run, before=progress.batch)
        self._observe(run, progress)

    def catch_up(self) -> None:
        """Process the batches that were not observed and that Spark still reports."""
        for run in self._queries.running():
            self._catch_up(run)

    def on_idle(self, idle: IdleTrigger) -> None:
        """Process a trigger without data: nothing has arrived since the last observation."""
        run = self._queries.run(idle.run)
        if run is None:
            return
        if run.last_s is None:
            run.last_s = idle.at_s
            return
        latest, arrivals = run.query.latest, run.query.arrived
        names = self._queries.source_names(run, len(latest.sources) if latest else 1)
        holds_back = any(source.holds_back for source in run.handle.sources)
        if arrivals is not None and not holds_back:
            run.query.arrived = replace(arrivals, at_s=idle.at_s)
        run.idle += 1
        sample = idle_flows(run.handle.name, names, run.handle.trigger_s, NAN if holds_back else 0.0)
        workers = self._executors.workers
        # An idle trigger has no batch number, so it gets its own count.
        self._tell(run, Observation(idle.at_s, 0.0, run.idle, sample, workers=workers, run=f"{idle.run}/idle"))

    def _catch_up(self, run: QueryRun, before: int | None = None) -> None:
        missed_batches: list[Progress] = []
        for report in run.handle.recent_progress():
            progress = self._read(report)
            observed = progress.run != run.handle.run_id or progress.batch <= run.last_batch
            if observed or progress.ended_s < self._since_s:
                break
            if before is None or progress.batch < before:
                missed_batches.append(progress)
        for progress in reversed(missed_batches):
            if not self.stopped:
                self._observe(run, progress)

    def _observe(self, run: QueryRun, progress: Progress) -> None:
        tasks = self._tasks(run, progress)
        around = self._look_around(run, progress)
        workers = self._executors.workers
        if self._sources is not None:
            progress = self._sources.positioned(run, progress)
        now = self._arrivals(run, progress)
        run.query.add_shares(row_shares(run.handle.sources, progress))
        sample = flows(
            progress,
            query=run.handle.name,
            trigger_s=run.handle.trigger_s,
            names=self._queries.source_names(run, len(progress.sources)),
            now=now,
            before=run.query.arrived,
            rows_per_offset=run.query.rows_per_offset,
        )
        run.query.arrived, run.query.latest = now, progress
        run.last_batch = progress.batch
        observation = Observation(
            at_s=progress.ended_s,
            span_s=progress.seconds,
            batch=progress.batch,
            flows=sample,
            tasks=tasks.samples,
            workers=workers,
            run=progress.run,
            states=self._states(progress, len(workers.ids)),
            balance=self._balance_of(run.handle.name, self._queries.topology, tasks.samples),
            keys={f"{run.handle.name}/{name}": load for name, load in progress.keys.items()},
            left_out=tasks.left_out,
            failures=tasks.failures,
            losses=self._executors.losses(run.losses_reported),
            other_jobs=tasks.other_jobs,
            driver=around.driver,
            hosts=around.hosts,
            files=tasks.files,
            sources=self._sources.samples(run) if self._sources is not None else (),
        )
        run.losses_reported = self._executors.lost_count
        self._tell(run, observation)
        self._stages.jobs.forget(progress.run, progress.batch, progress.timestamp_s + progress.seconds)

    def _tasks(self, run: QueryRun, progress: Progress) -> BatchTasks:
        tasks = [BatchTasks()]

        def read() -> None:
            tasks[0] = self._stages.tasks(run, progress)

        self._guard.run("tasks", read)
        for component, count in tasks[0].left_out.items():
            total = tasks[0].samples[component].instances
            self._guard.note("tasks", f"{component} has {total:,} tasks, of which {count:,} were not read")
        if count := tasks[0].failures_left_out:
            self._guard.note("failed tasks", f"{count:,} more failed attempts at tasks are not listed")
        return tasks[0]

    def _look_around(self, run: QueryRun, progress: Progress) -> Around:
        around = [Around()]

        def look() -> None:
            around[0] = self.surroundings.look(run.handle.run_id, progress.seconds)

        self._guard.run("driver", look)
        return around[0]

    def _read(self, report: Json) -> Progress:
        progress = read_progress(report)
        return replace(progress, started_s=self._steady_s(progress.started_s))

    def _tell(self, run: QueryRun, observation: Observation) -> None:
        """An observation spans the time since the one before. The first spans the duration of its batch.

        The clocks of several processes differ a little, and may be set. Even then, each observation must end after the
        one before.
        """
        at_s, span_s = min(observation.at_s, self._clock()), observation.span_s
        if run.last_s is not None and at_s - run.last_s >= _LEAST_SPAN_S:
            span_s = at_s - run.last_s
        elif run.last_s is not None:
            at_s = run.last_s + _LEAST_SPAN_S
        if at_s != observation.at_s:
            self.clipped += 1
            off = f"the end of a batch was corrected by {abs(at_s - observation.at_s):.3f} s"
            why = "a clock was set, or clocks differ"
            self._guard.note("the clock", f"{off} (correction number {self.clipped}): {why}")
        run.last_s = at_s
        self._emit(Observed(replace(observation, at_s=at_s, span_s=max(span_s, _LEAST_SPAN_S))))

    def _arrivals(self, run: QueryRun, progress: Progress) -> Arrivals:
        """The rows that had arrived when the batch ended. If that is unknown, those that Spark saw when it began."""

        def watched_end(source: int, at_s: float) -> float:
            return self._sources.end_at(run, source, at_s) if self._sources is not None else NAN

        rows = arrived_rows(run.handle.sources, progress, progress.ended_s, watched_end)
        return Arrivals(progress.ended_s, rows) if all(row == row for row in rows) else arrivals(progress)

    def _states(self, progress: Progress, workers: int) -> dict[str, StateSample]:
        return {
            name: replace(state, limits=self.stores.limits(state.backend, workers))
            for name, state in progress.states.items()
        }
