"""Observations of the batches in an event log, as the sensors would have made them while the application ran."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace

from homeostat.core.observation import NAN, Observation
from homeostat.core.topology import Topology
from homeostat.spark.outside import event_log
from homeostat.spark.outside.event_log import Event
from homeostat.spark.outside.logged_files import LoggedFiles
from homeostat.spark.outside.logged_stages import LoggedStages
from homeostat.spark.outside.logged_workers import LoggedWorkers
from homeostat.spark.sense.other_jobs import split_jobs
from homeostat.spark.sense.progress import Arrivals, Progress, arrivals, flows, read_progress
from homeostat.spark.sense.stage_names import NameBook, plan_version
from homeostat.spark.sense.stage_reader import BatchTasks, batch_tasks
from homeostat.spark.sense.stage_run import StageRun
from homeostat.spark.sense.state_stores import store_settings

# The shortest span of an observation. Spark's clock has a resolution of a millisecond.
_LEAST_SPAN_S = 0.001


@dataclass
class _Query:
    names: NameBook
    arrived: Arrivals | None = None
    last_s: float = NAN
    losses_reported: int = 0


@dataclass
class LogObserver:
    """Takes events in their order, and returns an observation for each one that ends a batch.

    Names of components are those within their query. Values that only a running application can provide are unknown:
    the trigger, the load of the hosts, and arrivals during a batch.
    """

    damaged_events: int = 0
    _queries: dict[str, _Query] = field(default_factory=dict)
    _stages: LoggedStages = field(default_factory=LoggedStages)
    _workers: LoggedWorkers = field(default_factory=LoggedWorkers)
    _files: LoggedFiles = field(default_factory=LoggedFiles)

    def observations(self, events: Iterable[Event]) -> Iterator[Observation]:
        for event in events:
            observation = self.take(event)
            if observation is not None:
                yield observation

    def take(self, event: Event) -> Observation | None:
        try:
            if event["Event"] == event_log.QUERY_PROGRESS:
                return self._observe(read_progress(event_log.progress_of(event)))
            for handle in self._handlers.get(event["Event"], ()):
                handle(event)
        except (KeyError, TypeError, ValueError):
            self.damaged_events += 1
        return None

    def queries(self) -> tuple[str, ...]:
        return tuple(self._queries)

    def topology(self, query: str) -> Topology:
        """The components of a query in the batches so far."""
        names = self._queries[query].names
        return Topology(names.components(prefixed=False), plan_version([names], prefixed=False))

    @property
    def _handlers(self) -> Mapping[str, tuple[Callable[[Event], None], ...]]:
        stages, workers = self._stages, self._workers
        return {
            event_log.ENVIRONMENT: (workers.environment,),
            event_log.EXECUTOR_ADDED: (workers.executor_added,),
            event_log.EXECUTOR_REMOVED: (workers.executor_removed,),
            event_log.BLOCK_MANAGER_ADDED: (workers.block_manager_added,),
            event_log.STAGE_EXECUTOR_METRICS: (workers.stage_metrics,),
            event_log.QUERY_STARTED: (stages.query_started,),
            event_log.JOB_START: (stages.job_started,),
            event_log.JOB_END: (stages.job_ended,),
            event_log.STAGE_SUBMITTED: (stages.stage_submitted,),
            event_log.STAGE_COMPLETED: (stages.stage_completed,),
            event_log.SQL_STARTED: (self._files.started,),
            event_log.SQL_REPLANNED: (self._files.replanned,),
            event_log.SQL_COUNTED: (self._files.counted,),
            event_log.TASK_END: (stages.task_ended, workers.task_ended),
        }

    def _observe(self, progress: Progress) -> Observation:
        query = self._queries.setdefault(progress.query, _Query(NameBook(progress.query)))
        tasks, workers = self._tasks(query, progress), self._workers.workers()
        now = arrivals(progress)
        stores = store_settings(self._workers.properties.get, self._workers.properties.get("spark.master", ""))
        observation = Observation(
            at_s=progress.ended_s,
            span_s=max(_LEAST_SPAN_S, _span_s(query.last_s, progress)),
            batch=progress.batch,
            flows=flows(
                progress,
                query=progress.query,
                trigger_s=NAN,
                names=query.names.source_names(len(progress.sources)),
                now=now,
                before=query.arrived,
            ),
            tasks=tasks.samples,
            workers=workers,
            run=progress.run,
            states={
                name: replace(state, limits=stores.limits(state.backend, len(workers.ids)))
                for name, state in progress.states.items()
            },
            keys={f"{progress.query}/{name}": load for name, load in progress.keys.items()},
            failures=tasks.failures,
            losses=tuple(self._workers.losses[query.losses_reported :]),
            other_jobs=tasks.other_jobs,
            driver=self._workers.driver(progress.ended_s, progress.seconds),
            files=self._files.of_batch(progress.run, progress.batch),
        )
        query.arrived, query.last_s = now, progress.ended_s
        query.losses_reported = len(self._workers.losses)
        self._stages.forget(progress.run, progress.batch)
        return observation

    def _tasks(self, query: _Query, progress: Progress) -> BatchTasks:
        of_query, others = split_jobs(self._stages.of_batch(progress.run, progress.batch), self._stages.graph)
        runs = self._stages.stage_runs(of_query)
        has_rows = any(source.rows != 0 for source in progress.sources)
        stages = [run.stage for run in runs]
        names = query.names.assign(stages) if has_rows else query.names.find(stages)
        by_component: dict[str, list[StageRun]] = {}
        for run in runs:
            if run.stage.id in names:
                by_component.setdefault(names[run.stage.id].name, []).append(run)
        return batch_tasks(by_component, others, self._workers.workers(), progress.timestamp_s)


def _span_s(last_s: float, progress: Progress) -> float:
    """The time since the observation before. The first spans its own duration."""
    return progress.seconds if math.isnan(last_s) or last_s >= progress.ended_s else progress.ended_s - last_s
