"""A running application: its session, its queries, what is seen of them and what is done to them."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import (
    EXECUTORS,
    EXECUTORS_KNOB,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    TRIGGER_S,
    Capabilities,
    Configuration,
    Knob,
    Value,
)
from homeostat.core.errors import ConfigError
from homeostat.core.events import Apply, EngineChanged, Event, Observed, Receipt, UnderWay
from homeostat.core.objective import Objective
from homeostat.core.observation import Balance
from homeostat.core.topology import Topology
from homeostat.models.partition_sizes import UnevenPartitions
from homeostat.spark.act import executor_shares
from homeostat.spark.act.actuator import Actuator
from homeostat.spark.act.admission import default_rows, report_bound, written_values
from homeostat.spark.act.capabilities import Surroundings, judge, look_around
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.executors import Executors, at_once
from homeostat.spark.act.locality import Locality, ran_slowest_stage
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.engine import QueryEngine
from homeostat.spark.pipeline import (
    DEFAULT_TRIGGER_S,
    Context,
    Pipeline,
    built,
    running_trigger_s,
    written_trigger_s,
)
from homeostat.spark.sense.declared_steps import NO_STEPS
from homeostat.spark.sense.executor_watch import executor_news
from homeostat.spark.sense.key_balance import Balances, read_balance
from homeostat.spark.sense.query_handle import QueryHandle, handle_of
from homeostat.spark.sense.rest_client import RestClient
from homeostat.spark.sense.sensors import Sensors
from homeostat.spark.sense.source_formats import LiveBound, format_of, reset_live_bounds

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

DEFAULT_EXECUTORS = 2
DEFAULT_STATE_PARTITIONS = 8
START_LIMIT_S = 180.0
UNEVEN = UnevenPartitions()

Knobs = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class _Asked:
    """What a query's manager has asked for: its own command, and executors for this query alone."""

    query: str
    command: str
    executors: int


class Application:
    """`remembered` are the knobs of an earlier life, `remember` keeps them for the next. `room` is how many executors
    the cluster can hold, where that is known. Without `steer` the executors are left to Spark."""

    def __init__(
        self,
        pipelines: Sequence[Pipeline],
        directory: Path,
        remembered: Knobs | None = None,
        remember: Callable[[Knobs], None] = lambda _: None,
        room: int | None = None,
        steer: bool = True,
        uneven: UnevenPartitions = UNEVEN,
    ) -> None:
        self.pipelines = tuple(pipelines)
        self.directory = directory
        self._remember, self._room = remember, room
        known = remembered or {}
        wanted = {p.name: int(p.start.get(EXECUTORS, DEFAULT_EXECUTORS)) for p in pipelines}
        kept = known.get("executors", {})
        self.shares = {name: int(kept.get(name, count)) for name, count in wanted.items()}
        self._kept_values = {Knob.parse(name): value for name, value in known.get("values", {}).items()}
        self._contexts: dict[str, Context] = {}
        self._complaints: list[str] = []
        self._engines: dict[str, QueryEngine] = {}
        self._asked: dict[str, _Asked] = {}
        self._handles: dict[str, QueryHandle] = {}
        self.queries: dict[str, ManagedQuery] = {}
        self._steer, self._uneven = steer, uneven

    @classmethod
    def around(
        cls,
        spark: SparkSession,
        queries: Sequence[StreamingQuery],
        objective: Objective,
        directory: Path,
        uneven: UnevenPartitions = UNEVEN,
    ) -> Application:
        """Of queries that somebody else started: never restarted, and their executors are Spark's until a command."""
        pipelines = [Pipeline(query.name or str(query.id)[:8], _handed_over, objective) for query in queries]
        application = cls(pipelines, directory, uneven=uneven)
        for pipeline, query in zip(pipelines, queries, strict=True):
            managed = ManagedQuery.attached(spark, query)
            managed.name = pipeline.name
            trigger_s = running_trigger_s(query)
            managed.values = {} if math.isnan(trigger_s) else {Knob(TRIGGER_S, pipeline.name): trigger_s}
            report_bound(managed)
            application.queries[pipeline.name] = managed
        application.open(spark)
        application._share_out()
        return application

    @property
    def wanted_executors(self) -> int:
        return executor_shares.total(self.shares)

    @property
    def steers(self) -> bool:
        """Whether the executors are held here, and not left to Spark."""
        return self._executors is not None and self._executors.held

    # Life

    def open(self, spark: SparkSession) -> None:
        self.spark = spark
        context = spark.sparkContext
        self._surroundings = replace(look_around(spark, room=self._room), hands_off=not self._steer)
        steers = judge(self._surroundings).capabilities.can_replace
        self._executors = Executors(spark) if steers else None
        for pipeline in self.pipelines:
            if pipeline.name not in self.queries:
                self.queries[pipeline.name] = self._managed(pipeline)
        self.rest = RestClient(str(context.uiWebUrl))
        self.sensors = Sensors(
            self.rest,
            self._current_handles,
            self._route,
            spark=spark,
            on_change=self._changed,
            on_executors=self._executors_changed,
            leaving=lambda: self._executors.ended if self._executors is not None else (),
            balance_of=Balances(self._look_at_keys, self._route, self._uneven).of,
        )
        self._actuator = Actuator(
            self._executors,
            list(self.queries.values()),
            Locality(spark) if steers else None,
            lambda: self._capabilities(*self.queries.values()),
            ran_slowest_stage(spark),
            self._route,
        )

    def start(self) -> None:
        """Returns once every query has done a batch or found nothing to do."""
        if self._executors is not None and any(query.restartable for query in self.queries.values()):
            self._executors.take_over(self.wanted_executors)
            if len(self._executors.alive()) > self.wanted_executors:
                self._executors.shrink(self.wanted_executors, at_once, Deadline.after(START_LIMIT_S))
        self.sensors.start()
        for pipeline in self.pipelines:
            query = self.queries[pipeline.name]
            if not query.restartable:
                continue
            query.start(Deadline.after(START_LIMIT_S))
            query.values = self._known_knobs(pipeline.name, {**query.values, **self._contexts[pipeline.name].asked})
            report_bound(query)
            if not self._live_bounds(pipeline.name):
                query.listens = False
        self._actuator.start()
        self._keep()

    def stop(self, *, session: bool = True) -> None:
        """The batch under way is called off; Spark redoes it on the next start. The session may stay for others."""
        ours = [query.stop for query in self.queries.values() if query.restartable]
        for part in (self._actuator.stop, self.sensors.stop, *ours, *([self.spark.stop] if session else [])):
            try:
                part()
            except Exception as error:  # the others are to be stopped all the same
                self._complaints.append(str(error))

    def running(self) -> bool:
        return all(not query.given_up for query in self.queries.values())

    @property
    def failure(self) -> str:
        return "; ".join(f"query {q.name}: {q.given_up}" for q in self.queries.values() if q.given_up)

    def control(self, query: str) -> Path:
        """The file through which a source is told to admit more or fewer rows."""
        return self.directory / "control" / f"{query}.json"

    # What the loop sees

    def engine(self, query: str) -> QueryEngine:
        """A new end for a manager; the one before, if any, is fenced off."""
        if query in self._engines:
            self._engines[query].close()
        self._engines[query] = QueryEngine(self, query)
        return self._engines[query]

    def describe(self, query: str, reason: str = "start") -> EngineChanged:
        configuration = self._seen_by(query, self._actuator.configuration())
        capabilities = self._capabilities(self.queries[query])
        return EngineChanged(self._topology(query), configuration, capabilities, time.time(), reason)

    def apply(self, query: str, command: Apply) -> None:
        """A query asks for executors of its own; the application runs the sum."""
        executors = int(command.desired.get(EXECUTORS_KNOB, self.shares[query]))
        id = f"{query}/{command.id}"  # every query's manager counts its commands for itself
        self._asked[id] = _Asked(query, command.id, executors)
        values = dict(command.desired.values)
        if EXECUTORS_KNOB in values:
            under_way = {asked.query: asked.executors for asked in list(self._asked.values())}
            values[EXECUTORS_KNOB] = executor_shares.total({**self.shares, **under_way, query: executors})
        self._actuator.apply(replace(command, id=id, desired=Configuration(values, self._still_there(command))))

    def _still_there(self, command: Apply) -> frozenset[str]:
        """Whom it may retire. After a crash the ids begin anew: an order is never about an executor that came later."""
        if self._executors is None:
            return command.desired.retired
        later = {executor.id for executor in self._executors.alive() if executor.since_s > command.at_s}
        return command.desired.retired - later

    def run_name(self, query: str) -> str:
        return f"{self.directory.name}/{query}"

    def capability_table(self) -> list[dict[str, Any]]:
        return [asdict(finding) for finding in judge(self._here(), list(self.queries.values())).table]

    def _capabilities(self, *queries: ManagedQuery) -> Capabilities:
        return judge(self._here(), queries).capabilities

    def _here(self) -> Surroundings:
        """With the executors of now: where they cannot be steered, their number is the knob's only value."""
        return replace(self._surroundings, executors=len(self.sensors.workers().ids) or self._surroundings.executors)

    def _topology(self, query: str) -> Topology:
        whole = self.sensors.topology()
        if whole is None:
            return Topology(())
        if len(self.queries) == 1:
            return whole
        return Topology(tuple(c for c in whole if c.query == query), whole.plan)

    def _seen_by(self, query: str, whole: Configuration) -> Configuration:
        own = self.queries[query].values
        values: dict[Knob, Value] = {knob: value for knob, value in whole.values.items() if knob in own}
        if EXECUTORS_KNOB in whole.values:
            values[EXECUTORS_KNOB] = executor_shares.observed(self.shares, query, int(whole[EXECUTORS_KNOB]))
        return Configuration(values, whole.retired)

    # Events on their way from Spark to the engines

    def _route(self, event: Event) -> None:
        match event:
            case Observed(observation):
                name = observation.flows[0].query if observation.flows else ""
                self._put(name, Observed(executor_shares.as_seen_by(self.shares, name, observation)))
            case UnderWay(run):
                names = [name for name, handle in self._handles.items() if handle.run_id == run]
                self._put(names[0] if names else "", event)
            case Receipt():
                self._received(event)
            case _:
                for name in self._engines:
                    self._put(name, event)

    def _received(self, receipt: Receipt) -> None:
        asked = self._asked.pop(receipt.command_id)
        if receipt.applied:
            self.shares = {**self.shares, asked.query: asked.executors}
        self._keep()
        seen = self._seen_by(asked.query, receipt.configuration)
        self._put(asked.query, replace(receipt, command_id=asked.command, configuration=seen))

    def _executors_changed(self, gone: frozenset[str], new: frozenset[str]) -> None:
        """Those that came or went by our doing are told by the receipt."""
        if self._executors is not None:
            self._share_out()
            ended = self._executors.ended
            gone, new = gone - ended, new - ended - self._executors.brought - self._executors.late()
        if (gone or new) and not self._actuator.busy:
            self._changed(executor_news(gone, new))

    def _share_out(self) -> None:
        """As long as Spark decides how many there are, the queries share those."""
        if self._executors is not None and not self._executors.held:
            self.shares = executor_shares.split(len(self._executors.alive()), list(self.queries))

    def _look_at_keys(self, query: str) -> Balance | None:
        managed = self.queries[query]
        return read_balance(self.spark, managed.checkpoint) if managed.stateful else None

    def _changed(self, reason: str) -> None:
        for name in list(self._engines):
            self._put(name, self.describe(name, reason))

    def _put(self, name: str, event: Event) -> None:
        engine = self._engines.get(name)
        if engine is not None:
            engine.put(event)

    def _current_handles(self) -> list[QueryHandle]:
        for name, managed in self.queries.items():
            query = managed.query
            if query is None:
                continue
            known = self._handles.get(name)
            if known is None or known.run_id != str(query.runId):
                trigger_s = float(managed.values.get(Knob(TRIGGER_S, name), math.nan))
                context = self._contexts.get(name)
                steps = NO_STEPS if context is None else context.steps
                self._handles[name] = handle_of(query, name, trigger_s, steps)
        return list(self._handles.values())

    # Knobs

    def _managed(self, pipeline: Pipeline) -> ManagedQuery:
        name = pipeline.name
        control = self.control(name)
        control.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = self.directory / "checkpoints" / name

        def build(values: Mapping[Knob, Value]) -> Any:
            context = Context(self.spark, name, values, self.directory, control)
            writer = built(pipeline, context)
            written = written_values(pipeline, written_trigger_s(writer), values)
            if any(values.get(knob, value) != value for knob, value in written.items()):
                context = Context(self.spark, name, {**values, **written}, self.directory, control)
                writer = built(pipeline, context)
            context.asked.update(written)
            self._contexts[name] = context
            return writer

        def admit(rows: int) -> None:
            for bound in self._live_bounds(name):
                bound.change(control, rows)

        values = {**self._first_values(pipeline), **{k: v for k, v in self._kept_values.items() if _of(k, name)}}
        reset_live_bounds(control)
        return ManagedQuery(self.spark, name, build, checkpoint, values, admit=admit)

    @staticmethod
    def _first_values(pipeline: Pipeline) -> dict[Knob, Value]:
        name, start = pipeline.name, pipeline.start
        trigger_s = DEFAULT_TRIGGER_S if pipeline.trigger_s is None else pipeline.trigger_s
        set_here = {} if pipeline.trigger_s is None else {Knob(TRIGGER_S, name): pipeline.trigger_s}
        return set_here | {
            Knob(STATE_PARTITIONS, name): start.get(STATE_PARTITIONS, DEFAULT_STATE_PARTITIONS),
            Knob(SOURCE_PARTITIONS, name): start.get(SOURCE_PARTITIONS, DEFAULT_STATE_PARTITIONS),
            Knob(ROWS_PER_TRIGGER, name): start.get(ROWS_PER_TRIGGER, default_rows(pipeline, trigger_s)),
        }

    def _known_knobs(self, name: str, values: Mapping[Knob, Value]) -> dict[Knob, Value]:
        """Without those that the query's sources know nothing of, or that it has no state for."""
        formats = [format_of(each) for each in self._contexts[name].formats]
        useless = set()
        if not any(each.bound_option for each in formats):
            useless.add(ROWS_PER_TRIGGER)
        if not any(each.partitions_option for each in formats):
            useless.add(SOURCE_PARTITIONS)
        if not self.queries[name].checkpoint.has_state():
            useless.add(STATE_PARTITIONS)
        return {knob: value for knob, value in values.items() if knob.kind not in useless}

    def _live_bounds(self, name: str) -> list[LiveBound]:
        """Of the sources that the query reads from."""
        bounds = [format_of(each).live_bound for each in self._contexts[name].formats]
        return [bound for bound in bounds if bound is not None]

    def _keep(self) -> None:
        values = {str(knob): value for query in self.queries.values() for knob, value in query.chosen.items()}
        self._remember({"executors": dict(self.shares), "values": values})


def _handed_over(context: Context) -> Any:
    raise ConfigError("a query that was handed over running cannot be built again")


def _of(knob: Knob, query: str) -> bool:
    return knob.query == query
