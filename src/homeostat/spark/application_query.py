"""One query of an application: its pipeline, the running query, and the engine through which its manager acts."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import (
    ASYNC_PROGRESS,
    CHANGELOG_CHECKPOINTING,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    STATE_PARTITIONS,
    TRIGGER_S,
    Knob,
    Value,
)
from homeostat.core.errors import ConfigError
from homeostat.core.events import Event
from homeostat.core.observation import Balance
from homeostat.spark.act.admission import default_rows, report_bound, written_values
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.handed_query import HandedQuery
from homeostat.spark.act.managed_query import Bounds, ManagedQuery
from homeostat.spark.act.switches import switch_values
from homeostat.spark.pipeline import (
    DEFAULT_TRIGGER_S,
    Context,
    Pipeline,
    build_writer,
    running_trigger_s,
    written_trigger_s,
)
from homeostat.spark.sense.declared_steps import NO_STEPS
from homeostat.spark.sense.key_balance import read_balance
from homeostat.spark.sense.query_handle import QueryHandle, handle_of
from homeostat.spark.sense.source_formats import format_of

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

    from homeostat.spark.engine import QueryEngine

# A choice for a small cluster: eight tasks keep a handful of executors busy. With Spark's default of 200 the fixed cost
# of each task would exceed the time for its rows.
DEFAULT_STATE_PARTITIONS = 8


class ApplicationQuery:
    """`values` are those of the knobs in an earlier run of the application. They override those of the pipeline."""

    def __init__(self, pipeline: Pipeline, directory: Path, values: Mapping[Knob, Value]) -> None:
        self.pipeline = pipeline
        self.engine: QueryEngine | None = None
        self._directory, self._earlier_values = directory, dict(values)
        self._managed: ManagedQuery | None = None
        self._state_is_known = True
        self._context: Context | None = None
        self._handle: QueryHandle | None = None
        self._written_trigger_s: float | None = None

    @property
    def name(self) -> str:
        return self.pipeline.name

    @property
    def managed(self) -> ManagedQuery:
        assert self._managed is not None, "open the application first"
        return self._managed

    @property
    def handed(self) -> HandedQuery:
        assert isinstance(self._managed, HandedQuery), "only a query that was handed over"
        return self._managed

    @property
    def control(self) -> Path:
        """The file through which the number of rows per batch changes while the query runs."""
        return self._directory / "control" / f"{self.name}.json"

    def attach(self, spark: SparkSession, query: StreamingQuery, bounds: Bounds) -> None:
        """Use a query that the application started itself. It is never restarted, and only knobs with bounds can
        change.
        """
        self._look_at(ManagedQuery.attach(spark, query, self.name, bounds), query)

    def take_over(self, spark: SparkSession, build: Callable[[], Any], location: str, bounds: Bounds) -> None:
        """Start a query of an attached application, without waiting for its first batch. `build` makes its writer for
        every start.
        """
        handed = HandedQuery(spark, self.name, lambda values: build(), location, {}, bounds)
        handed.begin()
        assert handed.query is not None
        self._state_is_known = False
        self._look_at(handed, handed.query)

    def _look_at(self, managed: ManagedQuery, query: StreamingQuery) -> None:
        """Find out the values that the application chose."""
        trigger_s = managed.live.interval_s
        trigger_s = running_trigger_s(query) if math.isnan(trigger_s) else trigger_s
        if not math.isnan(trigger_s):
            managed.values = {**managed.values, Knob(TRIGGER_S, self.name): trigger_s}
        report_bound(managed)
        if ROWS_PER_TRIGGER in managed.bounds:
            managed.set_by_application = frozenset()
        self._managed = managed
        self.learn()

    def learn(self) -> bool:
        """Read the values that an attached query shows only after a batch. Return whether any are new."""
        return any([self._learn_limit(), self._learn_state()])

    def _learn_limit(self) -> bool:
        """Read the limit in rows, if Homeostat may change it. For a limit on files, it is known only after a batch."""
        knob, managed = Knob(ROWS_PER_TRIGGER, self.name), self.managed
        if ROWS_PER_TRIGGER not in managed.bounds or knob in managed.values or (rows := managed.live.rows) is None:
            return False
        managed.values = {**managed.values, knob: rows}
        return True

    def _learn_state(self) -> bool:
        """Read whether a query that was handed over has state, and the settings that only a restart can change."""
        if self._state_is_known or self.managed.batches() < 0:
            return False
        self._state_is_known, handed = True, self.handed
        switches = switch_values(handed.spark, handed.query, self.name)
        partitions = handed.checkpoint.state_partitions() if handed.stateful else None
        state = {} if partitions is None else {Knob(STATE_PARTITIONS, self.name): partitions}
        useless = _useless_with_state(handed.stateful)
        values = {**switches, **state, **handed.values}
        handed.values = {knob: value for knob, value in values.items() if knob.kind not in useless}
        return True

    def open(self, spark: SparkSession) -> None:
        """Prepare the query in this session, unless it is attached."""
        if self._managed is not None:
            return
        self.control.parent.mkdir(parents=True, exist_ok=True)
        checkpoint = self._directory / "checkpoints" / self.name

        def build(values: Mapping[Knob, Value]) -> Any:
            return self._build(spark, values)

        values = {**first_values(self.pipeline), **self._earlier_values}
        self._managed = ManagedQuery(spark, self.name, build, checkpoint, values)

    def start(self, deadline: Deadline) -> None:
        """Start it, and find out which knobs it really has. Does nothing if it is attached."""
        query = self.managed
        if query.attached:
            return
        query.start(deadline)
        assert self._context is not None
        switches = switch_values(self._context.spark, query.query, self.name)
        query.values = self._without_useless({**switches, **query.values, **self._context.knob_values})
        report_bound(query)
        query.longest_trigger_s = self._longest_trigger_s()

    def handle(self) -> QueryHandle | None:
        """The handle of the current run, for the sensors; None before the first run."""
        query = self.managed.query
        if query is None:
            return self._handle
        trigger_s = float(self.managed.values.get(Knob(TRIGGER_S, self.name), math.nan))
        if self._handle is None or self._handle.run_id != str(query.runId):
            steps = NO_STEPS if self._context is None else self._context.steps
            self._handle = handle_of(query, self.name, trigger_s, steps)
        elif trigger_s != self._handle.trigger_s and not math.isnan(trigger_s):
            self._handle = replace(self._handle, trigger_s=trigger_s)
        return self._handle

    def is_run(self, run_id: str) -> bool:
        return self._handle is not None and self._handle.run_id == run_id

    def balance(self, spark: SparkSession) -> Balance | None:
        """How evenly the keys of its state would spread over each number of partitions; None if it has no state."""
        return read_balance(spark, self.managed.checkpoint) if self.managed.stateful else None

    def put(self, event: Event) -> None:
        """Hand an event to its manager, if it has one."""
        if self.engine is not None:
            self.engine.put(event)

    def _build(self, spark: SparkSession, values: Mapping[Knob, Value]) -> Any:
        context = Context(spark, self.name, values, self._directory, self.control)
        writer = build_writer(self.pipeline, context)
        written_s = written_trigger_s(writer)
        self._written_trigger_s = None if math.isnan(written_s) else written_s
        values_of_writer = written_values(self.pipeline, written_s, values)
        if any(values.get(knob, value) != value for knob, value in values_of_writer.items()):
            context = Context(spark, self.name, {**values, **values_of_writer}, self._directory, self.control)
            writer = build_writer(self.pipeline, context)
        context.knob_values.update(values_of_writer)
        self._context = context
        return writer

    def _longest_trigger_s(self) -> float | None:
        """The interval that the user chose, even if an earlier run has shortened it. An interval of 0 does not count as
        a choice.
        """
        given_s = [self.pipeline.longest_trigger_s, self.pipeline.trigger_s, self._written_trigger_s]
        return next((each for each in given_s if each is not None), None) or None

    def _without_useless(self, values: Mapping[Knob, Value]) -> dict[Knob, Value]:
        """The values without those of knobs that have no effect: knobs that no source of the query supports, knobs that
        need state if the query has none, and knobs that work only without state if it has some."""
        assert self._context is not None
        formats = [format_of(name) for name in self._context.formats]
        useless = set()
        if not any(source_format.bound_option for source_format in formats):
            useless.add(ROWS_PER_TRIGGER)
        if not any(source_format.partitions_option for source_format in formats):
            useless.add(SOURCE_PARTITIONS)
        useless |= _useless_with_state(self.managed.checkpoint.has_state())
        return {knob: value for knob, value in values.items() if knob.kind not in useless}


def _useless_with_state(keeps_state: bool) -> set[str]:
    return {ASYNC_PROGRESS} if keeps_state else {STATE_PARTITIONS, CHANGELOG_CHECKPOINTING}


def attached_pipeline(query: StreamingQuery, **fields: Any) -> Pipeline:
    """A pipeline that represents a running query, and cannot be built."""
    return represented(query.name or str(query.id)[:8], **fields)


def represented(name: str, **fields: Any) -> Pipeline:
    return Pipeline(name, _cannot_build, **fields)


def first_values(pipeline: Pipeline) -> dict[Knob, Value]:
    """The values that a pipeline starts with if no earlier run chose others."""
    name, start = pipeline.name, pipeline.start
    trigger_s = DEFAULT_TRIGGER_S if pipeline.trigger_s is None else pipeline.trigger_s
    trigger = {} if pipeline.trigger_s is None else {Knob(TRIGGER_S, name): pipeline.trigger_s}
    return trigger | {
        Knob(STATE_PARTITIONS, name): start.get(STATE_PARTITIONS, DEFAULT_STATE_PARTITIONS),
        Knob(SOURCE_PARTITIONS, name): start.get(SOURCE_PARTITIONS, DEFAULT_STATE_PARTITIONS),
        Knob(ROWS_PER_TRIGGER, name): start.get(ROWS_PER_TRIGGER, default_rows(pipeline, trigger_s)),
    }


def _cannot_build(context: Context) -> Any:
    raise ConfigError("attached queries cannot be restarted")
