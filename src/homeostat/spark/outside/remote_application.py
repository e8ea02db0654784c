"""Watches any running Spark application through its REST API and, if there is one, its event log.

The REST API shows jobs, stages, tasks and executors, but no streaming progress: the numbers of arriving and waiting
rows are unknown. An event log adds the progress and the operators.
"""

from __future__ import annotations

import math
import time
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import Protocol

from homeostat.core.configuration import EXECUTORS_KNOB, Capabilities, Configuration
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Receipt, UnderWay
from homeostat.core.observation import NAN, Observation
from homeostat.core.topology import Topology
from homeostat.spark.clocks import STEADY, DriverClock
from homeostat.spark.event_inbox import Inbox
from homeostat.spark.outside.event_log import QUERY_PROGRESS, STAGE_SUBMITTED, EventLog, graph_of, progress_of
from homeostat.spark.sense.application_sensors import Sensors
from homeostat.spark.sense.executor_watch import executor_news
from homeostat.spark.sense.plan_graph import StageGraph
from homeostat.spark.sense.progress import Json
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.rest_answers import Job
from homeostat.spark.sense.rest_client import RestClient

_ENDED_AFTER_S = 10.0  # a choice: the latest batch counts as ended after so long without a further job
_LIST_ANEW_S = 30.0  # a choice: after so long without a new job, check whether a number was skipped
# How many runs are remembered: those that reported last. Only the newest run of each query can still be running. A
# choice.
_RUNS_KEPT = 100
_MOST_KEPT = 200  # jobs, progress reports and stage graphs. A choice: more than any recent batch needs
ONLY_WATCHED = "Homeostat only watches this application"


class Queries(Protocol):
    """A way to find the queries of an application and their progress."""

    def handles(self) -> Sequence[QueryHandle]: ...

    def graph(self, stage: int) -> StageGraph | None: ...


class RestQueries:
    """Batches from REST: each lasts from the start of its first job to the end of its last."""

    def __init__(self, rest: RestClient, clock: DriverClock) -> None:
        self._rest, self._clock = rest, clock
        self._next, self._news_s = 0, -math.inf
        self._runs: dict[str, dict[int, Job]] = {}

    def handles(self) -> list[QueryHandle]:
        self._follow()
        return [
            QueryHandle(jobs[max(jobs)].query, run, recent_progress=partial(self._progress, run))
            for run, jobs in self._runs.items()
        ]

    def graph(self, stage: int) -> StageGraph | None:
        return None

    def _follow(self) -> None:
        if time.monotonic() - self._news_s > _LIST_ANEW_S:
            for job in self._rest.jobs():
                self._note(job)
            self._news_s = time.monotonic()
        while (next_job := self._rest.job(self._next)) is not None:
            self._note(next_job)
            self._news_s = time.monotonic()
        for jobs in self._runs.values():
            for number in [number for number, job in jobs.items() if job.running]:
                ended_job = self._rest.job(number)
                if ended_job is not None:
                    jobs[number] = ended_job

    def _note(self, job: Job) -> None:
        self._next = max(self._next, job.id + 1)
        if job.batch is not None and job.group:
            jobs = self._runs.setdefault(job.group, {})
            jobs[job.id] = job
            for old in sorted(jobs)[:-_MOST_KEPT]:
                del jobs[old]
            if len(self._runs) > _RUNS_KEPT:
                del self._runs[min(self._runs, key=lambda run: max(self._runs[run]))]

    def _progress(self, run: str) -> Iterator[Json]:
        """The progress of the batches that have ended, newest first."""
        batches: dict[int, list[Job]] = {}
        for job in self._runs[run].values():
            batches.setdefault(job.batch or 0, []).append(job)
        newest = max(batches, default=0)
        for batch, jobs in sorted(batches.items(), reverse=True):
            ended_s = max(job.ended_s for job in jobs)
            all_ended = not any(job.running for job in jobs)
            if all_ended and (batch < newest or STEADY.now_s() - self._clock.steady_s(ended_s) > _ENDED_AFTER_S):
                yield _as_progress(run, batch, min(job.submitted_s for job in jobs), ended_s)


def _as_progress(run: str, batch: int, began_s: float, ended_s: float) -> Json:
    """A progress report as Spark writes it, without the values that REST does not show."""
    return {
        "id": run,
        "runId": run,
        "batchId": batch,
        "timestamp": f"{datetime.fromtimestamp(began_s, UTC):%Y-%m-%dT%H:%M:%S.%f}Z",
        "durationMs": {"triggerExecution": (ended_s - began_s) * 1000},
        "stateOperators": [{}],
        "sources": [{"numInputRows": NAN}],
    }


class LogQueries:
    """Progress and operators from the event log, which Spark writes while the application runs."""

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._progress: dict[str, deque[Json]] = {}
        self._graphs: dict[int, StageGraph] = {}

    def handles(self) -> list[QueryHandle]:
        for event in self._log.new_events():
            self._take(event)
        return [
            QueryHandle(_name_in(reports[-1]), run, recent_progress=partial(_newest_first, reports))
            for run, reports in self._progress.items()
        ]

    def graph(self, stage: int) -> StageGraph | None:
        return self._graphs.get(stage)

    def _take(self, event: Json) -> None:
        if event["Event"] == QUERY_PROGRESS:
            progress = progress_of(event)
            self._progress.setdefault(str(progress["runId"]), deque(maxlen=_MOST_KEPT)).append(progress)
            if len(self._progress) > _RUNS_KEPT:
                del self._progress[min(self._progress, key=lambda run: str(self._progress[run][-1]["timestamp"]))]
        elif event["Event"] == STAGE_SUBMITTED:
            info = event["Stage Info"]
            self._graphs[int(info["Stage ID"])] = graph_of(info)
            for old in list(self._graphs)[:-_MOST_KEPT]:
                del self._graphs[old]


def _name_in(report: Json) -> str:
    return str(report.get("name") or report["id"])


def _newest_first(reports: deque[Json]) -> Sequence[Json]:
    return list(reports)[::-1]


class WatchedQuery:
    """One query as an engine that can be observed but not changed."""

    def __init__(self, application: WatchedApplication, query: str) -> None:
        self._application, self.query = application, query
        self._inbox = Inbox()

    @property
    def now_s(self) -> float:
        return STEADY.now_s()

    def describe(self) -> EngineChanged:
        return self._application.describe(self.query, "start")

    def put(self, event: Event) -> None:
        self._inbox.put(event)

    def wait(self, until_s: float) -> Sequence[Event]:
        return self._inbox.wait(until_s)

    def apply(self, command: Apply) -> None:
        observed = self.describe().configuration
        self.put(Receipt(command.id, self.now_s, observed, applied=False, detail=ONLY_WATCHED))

    def close(self) -> None:
        """Nothing to release."""


class WatchedApplication:
    """Sensors of an application that is not changed. Each query gets its own events."""

    def __init__(self, rest: RestClient, log: EventLog | None = None) -> None:
        clock = DriverClock()
        rest.on_date = clock.hear
        self._queries: Queries = RestQueries(rest, clock) if log is None else LogQueries(log)
        self._rest, self.address = rest, rest.base_url
        self._engines: dict[str, WatchedQuery] = {}
        self._runs: dict[str, str] = {}
        self.sensors = Sensors(
            rest,
            self._handles,
            self._route,
            graph_of=self._queries.graph,
            steady_s=clock.steady_s,
            on_change=self._on_change,
            on_executors=lambda lost, new: self._on_change(executor_news(lost, new)),
        )

    def start(self) -> None:
        self.sensors.start()

    def stop(self) -> None:
        self.sensors.stop()
        self._rest.close()

    def queries(self) -> list[WatchedQuery]:
        """The queries seen so far."""
        return list(self._engines.values())

    def describe(self, query: str, reason: str) -> EngineChanged:
        whole = self.sensors.topology()
        mine = Topology(tuple(part for part in whole if part.query == query), whole.plan) if whole else Topology(())
        configuration = Configuration({EXECUTORS_KNOB: len(self.sensors.workers().ids)})
        return EngineChanged(mine, configuration, Capabilities(notes={"all": ONLY_WATCHED}), STEADY.now_s(), reason)

    def _handles(self) -> Sequence[QueryHandle]:
        handles = self._queries.handles()
        for handle in handles:
            self._runs.pop(handle.run_id, None)
            self._runs[handle.run_id] = handle.name
            self._engines.setdefault(handle.name, WatchedQuery(self, handle.name))
        for run in list(self._runs)[: -2 * _RUNS_KEPT]:  # the reports of those that ended may still arrive
            del self._runs[run]
        return handles

    def _route(self, event: Event) -> None:
        match event:
            case Observed(observation):
                query = self._runs.get(observation.run.partition("/")[0], "")
                self._put([query], Observed(_with_rows_of_the_scan(observation, self.sensors.topology())))
            case UnderWay(run):
                self._put([self._runs.get(run, "")], event)
            case _:
                self._put(self._engines, event)

    def _put(self, queries: Iterable[str], event: Event) -> None:
        for query in list(queries):
            if query in self._engines:
                self._engines[query].put(event)

    def _on_change(self, reason: str) -> None:
        for name, engine in list(self._engines.items()):
            engine.put(self.describe(name, reason))


def _with_rows_of_the_scan(observation: Observation, topology: Topology | None) -> Observation:
    """REST does not report the rows of a batch, so they are added up over the tasks that read them."""
    if topology is None or not observation.flows or not math.isnan(observation.flows[0].rows):
        return observation
    sources = [part.name for part in topology.sources if part.name in observation.tasks]
    if not sources:
        return observation
    rows = sum(float(observation.tasks[name].rows.sum()) for name in sources)
    return replace(observation, flows=(replace(observation.flows[0], rows=rows), *observation.flows[1:]))
