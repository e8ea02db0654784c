"""A running application: its session, its queries, its sensors and its actuator."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path
from tempfile import gettempdir
from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import EXECUTORS, Configuration, Knob
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Receipt, SourceSeen, UnderWay
from homeostat.core.objective import Objective
from homeostat.core.topology import Topology
from homeostat.models.partition_sizes import UnevenPartitions
from homeostat.spark.act.actuator import Actuator
from homeostat.spark.act.capabilities import Findings, judge, look_around
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.evidence import Witness
from homeostat.spark.act.executor_shares import ExecutorShares
from homeostat.spark.act.executors import Executors, at_once
from homeostat.spark.act.locality import Locality, ran_slowest_stage
from homeostat.spark.act.managed_query import Bounds, ManagedQuery
from homeostat.spark.application_query import ApplicationQuery, attached_pipeline
from homeostat.spark.clocks import STEADY
from homeostat.spark.engine import QueryEngine
from homeostat.spark.pipeline import Pipeline
from homeostat.spark.sense.answering_source import AnsweringSource
from homeostat.spark.sense.application_sensors import Sensors
from homeostat.spark.sense.disks import Disks
from homeostat.spark.sense.executor_watch import executor_news
from homeostat.spark.sense.key_balance import Balances
from homeostat.spark.sense.query_handle import QueryHandle
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.savepoint_watch import SavepointWatch
from homeostat.spark.sense.status_store import StatusStore
from homeostat.spark.undone_work import UndoneWork

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

# With fewer than two executors, none can be compared with another.
DEFAULT_EXECUTORS = 2
# A first batch on a busy machine, with its Python workers, can take more than a minute.
START_LIMIT_S = 180.0
UNEVEN = UnevenPartitions()
KEEPING = "writing the knobs for the next start"
TELLING = "writing the capabilities"

Knobs = Mapping[str, Any]


class Application:
    """`remembered` has the knobs of an earlier run, and `remember` saves them for the next one. `room` is how many
    executors the cluster can hold, if known. Without `steer`, Spark decides how many executors there are. `name` is
    the name of the application in the log, by default that of its directory."""

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        directory: Path,
        remembered: Knobs | None = None,
        remember: Callable[[Knobs], None] = lambda _: None,
        room: int | None = None,
        steer: bool = True,
        uneven: UnevenPartitions = UNEVEN,
        name: str = "",
    ) -> None:
        self.pipelines = tuple(pipelines)
        self.name = name or directory.name
        self.directory = directory
        self._remember, self._room, self._steer, self._uneven = remember, room, steer, uneven
        self._undone = UndoneWork(self._route)
        earlier = remembered or {}
        counts = {p.name: int(p.start.get(EXECUTORS, DEFAULT_EXECUTORS)) for p in pipelines}
        earlier_counts = earlier.get("executors", {})
        self._shares = ExecutorShares({name: int(earlier_counts.get(name, count)) for name, count in counts.items()})
        values = {Knob.parse(name): value for name, value in earlier.get("values", {}).items()}
        self.disks = Disks({"checkpoints": directory, "temporary files": Path(gettempdir())})
        self._savepoints = SavepointWatch()
        self._witness = Witness()
        self._publish: Callable[[list[dict[str, Any]]], None] = lambda table: None
        self._queries = {
            pipeline.name: ApplicationQuery(
                pipeline, directory, {knob: value for knob, value in values.items() if knob.query == pipeline.name}
            )
            for pipeline in pipelines
        }

    @classmethod
    def around(
        cls,
        spark: SparkSession,
        queries: Sequence[StreamingQuery],
        objective: Objective,
        directory: Path,
        uneven: UnevenPartitions = UNEVEN,
        name: str = "",
        bounds: Bounds = MappingProxyType({}),
        handed: Sequence[ApplicationQuery] = (),
    ) -> Application:
        """Attach to running queries. They are never restarted, except those in `handed`, which the application has
        handed over. Spark decides how many executors there are until the first command.

        `bounds` are the minimum and maximum that the user allows for the rows per trigger and the trigger interval.
        """
        pipelines = [attached_pipeline(query, objective=objective) for query in queries]
        application = cls([*pipelines, *(each.pipeline for each in handed)], directory, uneven=uneven, name=name)
        for pipeline, query in zip(pipelines, queries, strict=True):
            application._queries[pipeline.name].attach(spark, query, bounds)
        application._queries |= {each.name: each for each in handed}
        application.open(spark)
        application._share_out()
        return application

    @property
    def queries(self) -> dict[str, ManagedQuery]:
        return {name: query.managed for name, query in self._queries.items()}

    @property
    def wanted_executors(self) -> int:
        return self._shares.total

    @property
    def steers(self) -> bool:
        """Whether Homeostat, and not Spark, decides how many executors there are."""
        return self._executors is not None and self._executors.is_managed

    def open(self, spark: SparkSession) -> None:
        self.spark = spark
        self._surroundings = replace(look_around(spark, room=self._room), hands_off=not self._steer)
        steers = judge(self._surroundings).capabilities.can_replace
        self._executors = Executors(spark) if steers else None
        for query in self._queries.values():
            query.open(spark)
        url = spark.sparkContext.uiWebUrl
        self.status = AnsweringSource(StatusStore(spark), *([RestClient(str(url))] if url else []))
        self.sensors = Sensors(
            self.status,
            partial(_handles, self._queries),
            self._route,
            spark=spark,
            on_change=self._on_change,
            on_executors=self._executors_changed,
            leaving=lambda: self._executors.ended.ids if self._executors is not None else (),
            balance_of=Balances(lambda name: self._queries[name].balance(spark), self._route, self._uneven).of,
        )
        self._actuator = Actuator(
            self._executors,
            list(self.queries.values()),
            Locality(spark) if steers else None,
            lambda: self._findings(*self.queries.values()).capabilities,
            ran_slowest_stage(spark),
            self._route,
        )

    def start(self, cancelled: threading.Event | None = None) -> None:
        """Start all queries, except those of an attached application.

        Return when each has finished a batch or has nothing to do, or when `cancelled` is set.
        """
        if self._executors is not None and any(not query.attached for query in self.queries.values()):
            self._executors.take_over(self.wanted_executors)
            if len(self._executors.alive()) > self.wanted_executors:
                self._executors.shrink(self.wanted_executors, at_once, Deadline.after(START_LIMIT_S))
        self.sensors.start()
        for query in self._queries.values():
            query.start(Deadline.after(START_LIMIT_S, cancelled))
        self._actuator.start()
        self._undone.do(KEEPING, self._keep)

    def stop(self, *, session: bool = True) -> None:
        """Stop the queries that Homeostat started. This cancels their current batches, which Spark repeats at the next
        start. With `session`, stop the session as well."""
        ours = [query.stop for query in self.queries.values() if not query.attached]
        for stop in (
            self._actuator.stop,
            self.sensors.stop,
            self.status.close,
            *ours,
            *([self.spark.stop] if session else []),
        ):
            with suppress(Exception):  # the others must stop anyway
                stop()

    def running(self) -> bool:
        return all(not query.given_up for query in self.queries.values())

    @property
    def failure(self) -> str:
        return "; ".join(f"query {q.name}: {q.given_up}" for q in self.queries.values() if q.given_up)

    def control(self, query: str) -> Path:
        """The file through which the number of rows per batch changes while the query runs."""
        return self._queries[query].control

    def engine(self, query: str) -> QueryEngine:
        """A new engine for a manager. The previous engine, if any, can no longer act."""
        before = self._queries[query].engine
        if before is not None:
            before.close()
        engine = self._queries[query].engine = QueryEngine(self, query)
        return engine

    def describe(self, query: str, reason: str = "start") -> EngineChanged:
        managed = self._queries[query].managed
        configuration = self._shares.configuration(query, managed.values, self._actuator.configuration())
        return EngineChanged(
            self._topology(query), configuration, self._findings(managed).capabilities, STEADY.now_s(), reason
        )

    def apply(self, query: str, command: Apply) -> None:
        """Run a command of one query's manager."""
        shared_command = self._shares.request(query, command)
        if self._executors is not None:
            retired = self._executors.existed_at(shared_command.desired.retired, STEADY.to_time_of_day(command.at_s))
            shared_command = replace(shared_command, desired=Configuration(shared_command.desired.values, retired))
        self._witness.expect(shared_command, self._actuator.configuration())
        self._actuator.apply(shared_command)

    def run_name(self, query: str) -> str:
        return f"{self.name}/{query}"

    def publish_capabilities(self, publish: Callable[[list[dict[str, Any]]], None]) -> None:
        """Publish the capabilities now, and again whenever an action has worked or failed."""
        self._publish = publish
        publish(self.capability_table())

    def capability_table(self) -> list[dict[str, Any]]:
        return [asdict(finding) for finding in self._findings(*self.queries.values()).table]

    def _findings(self, *queries: ManagedQuery) -> Findings:
        """The capabilities with the current executors. If Homeostat cannot control them, their current number is the
        only value of the knob."""
        executors = len(self.sensors.workers().ids) or self._surroundings.executors
        return judge(replace(self._surroundings, executors=executors), queries, self._witness.evidence)

    def _topology(self, query: str) -> Topology:
        whole = self.sensors.topology()
        if whole is None:
            return Topology(())
        if len(self._queries) == 1:
            return whole
        return Topology(tuple(component for component in whole if component.query == query), whole.plan)

    def _route(self, event: Event) -> None:
        """Pass an event from the sensors or the actuator to the managers that it concerns."""
        self._undone.retry()
        if self._witness.note(event, self.status.way, self.status.errors.values()):
            self._undone.do(TELLING, lambda: self._publish(self.capability_table()))
        match event:
            case Observed(observation):
                name = observation.flows[0].query if observation.flows else ""
                if name in self._queries:
                    savepoints = self._savepoints.look(checkpoint_locations(self).get(name, ""))
                    observation = replace(observation, disks=self.disks.look(), savepoints=savepoints)
                    self._queries[name].put(Observed(self._shares.observation(name, observation)))
                    if self._queries[name].learn():
                        self._on_change("a batch has shown more settings of the query")
            case UnderWay(run):
                for query in self._queries.values():
                    if query.is_run(run):
                        query.put(event)
            case SourceSeen(sample):
                if sample.query in self._queries:
                    self._queries[sample.query].put(event)
            case Receipt():
                self._on_receipt(event)
            case _:
                for query in self._queries.values():
                    query.put(event)

    def _on_receipt(self, receipt: Receipt) -> None:
        name, answer = self._shares.answer(receipt)
        query = self._queries[name]
        configuration = self._shares.configuration(name, query.managed.values, receipt.configuration)
        query.put(replace(answer, configuration=configuration))
        self._undone.do(KEEPING, self._keep)

    def _executors_changed(self, lost: frozenset[str], new: frozenset[str]) -> None:
        """Report executors that no command started or ended. For those of a command, its receipt is the report."""
        if self._executors is not None:
            self._share_out()
            ended_ids = self._executors.ended.ids
            lost, new = lost - ended_ids, new - ended_ids - self._executors.started.ids - self._executors.late()
        if (lost or new) and not self._actuator.busy:
            self._on_change(executor_news(lost, new))

    def _share_out(self) -> None:
        """While Spark decides how many executors there are, the queries share them evenly."""
        if self._executors is not None and not self._executors.is_managed:
            self._shares.split_evenly(len(self._executors.alive()))

    def _on_change(self, reason: str) -> None:
        def tell(name: str) -> None:
            self._queries[name].put(self.describe(name, reason))

        for name, query in self._queries.items():
            if query.engine is not None:
                self._undone.do(f"description of {name}", partial(tell, name))

    def _keep(self) -> None:
        values = {str(knob): value for query in self.queries.values() for knob, value in query.chosen.items()}
        self._remember({"executors": self._shares.as_dict(), "values": values})


def waiting_queries(application: Application) -> dict[str, str]:
    """The queries that have not finished a batch in their current run, each with the activity that Spark reports for it
    and the sources that do not answer."""
    silent = application.sensors.sources.silent
    return {
        name: "; ".join(filter(None, (activity, silent(name))))
        for name, query in application.queries.items()
        if (activity := query.waits_for)
    }


def checkpoint_locations(application: Application) -> dict[str, str]:
    """The checkpoint of each query that can be restarted. For other queries it is unknown."""
    return {name: each.checkpoint.location for name, each in application.queries.items() if each.restartable}


def _handles(queries: Mapping[str, ApplicationQuery]) -> list[QueryHandle]:
    handles = (query.handle() for query in queries.values())
    return [handle for handle in handles if handle is not None]
