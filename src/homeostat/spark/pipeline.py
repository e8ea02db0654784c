"""The interface for users: a pipeline function builds a query from a context, which holds the knobs."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from homeostat.api_objectives import ObjectiveArgument, combine
from homeostat.core.configuration import (
    PARALLELISM,
    ROWS_PER_TRIGGER,
    SOURCE_PARTITIONS,
    SPREAD,
    Knob,
    Value,
)
from homeostat.core.errors import ConfigError, HomeostatError
from homeostat.core.objective import Objective
from homeostat.spark.cluster.kafka_connector import fix_for
from homeostat.spark.sense.declared_steps import DeclaredSteps
from homeostat.spark.sense.source_formats import format_of, knob_options
from homeostat.strict import units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

DEFAULT_PARALLELISM = 4  # a choice: keeps a few executors busy, and costs little when there is only one
DEFAULT_TRIGGER_S = 10.0  # a choice: results come soon, and overhead is a small part of a batch
START_KNOBS = ("executors", "state_partitions", "source_partitions", "rows_per_trigger")
_NAME = re.compile(r"\w[\w .-]*")  # also the name of a directory
_CHECKPOINT, _QUERY_NAME = "checkpointLocation", "queryName"
_ENDING = {"AvailableNowTrigger": "availableNow", "OneTimeTrigger": "once"}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Pipeline:
    """A query that can be built again with other values of its knobs. If `trigger_s` is None, the function sets the
    trigger.

    Without an objective for the latency, Homeostat never makes the trigger interval longer than `longest_trigger_s`,
    which is by default the first interval.
    """

    name: str
    build: Callable[[Context], Any]
    objective: Objective = Objective()
    trigger_s: float | None = None
    start: Mapping[str, Value] = field(default_factory=dict)
    longest_trigger_s: float | None = None


@dataclass(frozen=True, slots=True)
class Spread:
    """The number of instances that combine the rows of a step before they reach its state. With 1, rows go to the state
    directly."""

    instances: int
    name: str


class Context:
    """The argument of a pipeline function: the Spark session and the knobs.

    It records which knobs the function reads, so that the loop knows which knobs the query has and their names.
    """

    def __init__(
        self, spark: SparkSession, query: str, values: Mapping[Knob, Value], directory: Path, control: Path
    ) -> None:
        self.spark, self.directory = spark, directory
        self._query, self._values, self._control = query, values, control
        self.steps = DeclaredSteps()
        self.knob_values: dict[Knob, Value] = {}
        self.formats: list[str] = []

    def read_stream(self, format: str) -> DataStreamReader:
        """`spark.readStream.format(format)` with the knobs as options. An option that you set yourself wins."""
        name = format.lower()  # Spark ignores the case
        source_format = format_of(name)
        source_format.prepare(self.spark)
        self.formats.append(name)
        rows = self._values.get(Knob(ROWS_PER_TRIGGER, self._query))
        partitions = self._values.get(Knob(SOURCE_PARTITIONS, self._query))
        reader = self.spark.readStream.format(format).options(**knob_options(name, rows, partitions))
        option = source_format.control_option
        return reader.option(option, str(self._control)) if option else reader

    def parallelism(self, name: str, start: int = DEFAULT_PARALLELISM) -> int:
        """The number of partitions of the step with this name: `df.repartition(ctx.parallelism("split"))`."""
        self.steps = self.steps.with_repartition(name)
        return self._value_of(PARALLELISM, name, start)

    def spread(self, name: str, start: int = 1) -> Spread:
        """Over how many instances to spread the hot keys of this step: `hs.keyed(…, spread=ctx.spread("count"))`."""
        spread = Spread(self._value_of(SPREAD, name, start), name)
        self.steps = self.steps.with_spread(name, spread.instances)
        return spread

    def rebalanced(self, rows: DataFrame, name: str, start: int = 1) -> DataFrame:
        """The rows of a source, spread over more instances if its partitions are uneven. Call it right after
        `load()`."""
        instances = self._value_of(SPREAD, name, start)
        self.steps = self.steps.with_rebalance(name, instances)
        return rows if instances == 1 else rows.repartition(instances)

    def watched(self, rows: DataFrame, name: str, key: str | Sequence[str]) -> DataFrame:
        """The same rows, with their largest keys reported to the loop. Use it before operators other than hs.keyed."""
        from homeostat.spark.sense.key_sketch import watch_keys

        self._check_name(name)
        self.steps = self.steps.with_watch(name)
        return watch_keys(rows, name, (key,) if isinstance(key, str) else tuple(key))

    def _value_of(self, kind: str, name: str, start: int) -> int:
        self._check_name(name)
        knob = Knob.of_step(kind, self._query, name)
        self.knob_values[knob] = int(self._values.get(knob, start))
        return int(self.knob_values[knob])

    def _check_name(self, name: str) -> None:
        if not name or "/" in name:
            raise ConfigError(
                f"{name!r} is not a valid name for a step",
                where=f"pipeline {self._query}",
                fix="use a name that is not empty and has no slash",
            )


Builder = Callable[[Context], Any]


def pipeline(
    objective: ObjectiveArgument = None,
    *,
    name: str = "",
    trigger: float | str | None = None,
    longest_trigger: float | str | None = None,
    **start: Value,
) -> Callable[[Builder], Pipeline]:
    """Turn a function into a pipeline that `homeostat run` can start, regulate and restart.

    The function returns a `DataStreamWriter` without starting it. `start` sets the first values of knobs:
    `executors=2`, `state_partitions=8`, `source_partitions=4`, `rows_per_trigger=10_000`.
    """
    if callable(objective):
        raise ConfigError("the decorator is used without parentheses", where="pipeline", fix="write @pipeline()")
    unknown_knobs = set(start) - set(START_KNOBS)
    if unknown_knobs:
        raise ConfigError(
            f"unknown knob {min(unknown_knobs)!r}",
            where="pipeline",
            fix=f"use {', '.join(START_KNOBS[:-1])} or {START_KNOBS[-1]}",
        )
    for knob, value in start.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{knob} = {value!r} must be a whole number, at least 1", where="pipeline")
    trigger_s, longest_s = _seconds(trigger), _seconds(longest_trigger)

    def decorate(build: Builder) -> Pipeline:
        query_name = name or build.__name__
        if not valid_name(query_name):
            raise ConfigError(
                f"{query_name!r} is not a valid name for a query",
                where="pipeline",
                fix="set name= to letters, digits, spaces, dots or hyphens",
            )
        return Pipeline(query_name, build, combine(objective), trigger_s, dict(start), longest_s)

    return decorate


def valid_name(query: str) -> bool:
    return _NAME.fullmatch(query) is not None


def _seconds(trigger: float | str | None) -> float | None:
    if trigger is None:
        return None
    try:
        seconds = units.parse_duration(trigger) if isinstance(trigger, str) else float(trigger)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"trigger {error}", where="pipeline") from error
    if not 0 <= seconds < math.inf:
        raise ConfigError(f"trigger of {seconds:g} s is not a duration", where="pipeline", fix='write "10 s"')
    return seconds


def build_writer(pipeline: Pipeline, context: Context) -> Any:
    """The writer that the pipeline's function returns. An error in the function is reported with its line."""
    try:
        writer = pipeline.build(context)
    except HomeostatError:
        raise
    except Exception as error:
        words = str(error).strip().splitlines() or [""]
        raise ConfigError(
            f"{_place(pipeline, error)} raises {type(error).__name__}: {words[0]}", fix=fix_for(str(error))
        ) from error
    if not hasattr(writer, "foreachBatch"):
        raise ConfigError(
            f"the function returns {type(writer).__name__}, not a writer",
            fix="return df.writeStream…, without start()",
        )
    return writer


def _place(pipeline: Pipeline, error: Exception) -> str:
    code = getattr(pipeline.build, "__code__", None)
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if code is not None and f.filename == code.co_filename
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "the function"


def require_manageable(writer: Any, checkpoint: str) -> None:
    """Reject a writer whose trigger ends the query, or whose checkpoint Homeostat would silently override."""
    if ending := ending_trigger(writer):
        raise ConfigError(
            f"the trigger {ending} ends the query, and Homeostat would restart it forever",
            fix="remove .trigger(…), or use processingTime",
        )
    own = written_checkpoint(writer)
    if own not in ("", checkpoint):
        raise ConfigError(
            f"the function sets {_CHECKPOINT} to {own}, but Homeostat keeps the checkpoint in {checkpoint}",
            fix="remove the option; to continue from your checkpoint, copy it there first",
        )


def ending_trigger(writer: Any) -> str:
    """The name of the writer's trigger if it ends the query by itself; otherwise empty."""
    return _ENDING.get(_of_writer(writer, lambda get: str(get("trigger").toString()), ""), "")


def written_checkpoint(writer: Any) -> str:
    """The checkpoint location that the application sets in a writer; empty if it sets none or it cannot be read."""
    return _of_writer(writer, lambda get: str(get("extraOptions").apply(_CHECKPOINT)), "")


def written_name(writer: Any) -> str:
    """The name that the application gives to the query of a writer; empty if it gives none."""
    return _of_writer(writer, lambda get: str(get("extraOptions").apply(_QUERY_NAME)), "")


def written_trigger_s(writer: Any) -> float:
    """The interval of a writer's processing-time trigger; NaN for other triggers, or if it cannot be read."""
    return _of_writer(writer, lambda get: float(get("trigger").intervalMs()) / 1000.0, math.nan)


def _of_writer(writer: Any, read: Callable[[Callable[[str], Any]], _T], unknown: _T) -> _T:
    """Read private fields of Spark's writer. Return `unknown` if one is not set or this version of Spark lacks it."""

    def get(name: str) -> Any:
        java_field = writer._jwrite.getClass().getDeclaredField(name)
        java_field.setAccessible(True)
        return java_field.get(writer._jwrite)

    try:
        return read(get)
    except Exception:
        return unknown


def running_trigger_s(query: StreamingQuery) -> float:
    """The interval of a running query's processing-time trigger; NaN if it has another trigger."""
    try:
        return float(query._jsq.streamingQuery().trigger().intervalMs()) / 1000.0
    except Exception:
        return math.nan
