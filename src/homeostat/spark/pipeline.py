"""The user's side: a function that builds a query from a context which holds the knobs."""

from __future__ import annotations

import math
import re
import traceback
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

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
from homeostat.objectives import Wanted, combined
from homeostat.strict import units

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession
    from pyspark.sql.streaming.query import StreamingQuery
    from pyspark.sql.streaming.readwriter import DataStreamReader

DEFAULT_PARALLELISM = 4
DEFAULT_TRIGGER_S = 10.0
_NAME = re.compile(r"\w[\w .-]*")  # it names a directory, too
# What a source calls the bound on the rows of a batch, and the number of its partitions. Files and tables are bounded
# by files or bytes, which are no rows; `rate` and `rate-micro-batch` make their rows: a bound would change the load.
BOUND_OPTIONS = {"homeostat": "rowsPerTrigger", "kafka": "maxOffsetsPerTrigger"}
PARTITION_OPTIONS = {
    "homeostat": "partitions",
    "kafka": "minPartitions",
    "rate": "numPartitions",
    "rate-micro-batch": "numPartitions",
}
_CHECKPOINT = "checkpointLocation"
_ENDING = {"AvailableNowTrigger": "availableNow", "OneTimeTrigger": "once"}
_T = TypeVar("_T")


@dataclass(frozen=True)
class Pipeline:
    """A query that can be built again with other knobs. `trigger_s` None: as the function sets it."""

    name: str
    build: Callable[[Context], Any]
    objective: Objective = Objective()
    trigger_s: float | None = None
    start: Mapping[str, Value] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Spread:
    """On how many instances the rows of a step are added up before they reach its state; 1 on none."""

    instances: int
    name: str


class Context:
    """What a pipeline function gets: the session, and the knobs where it wants them.

    It notes what was asked for, so that the loop knows which knobs there are and what they were called.
    """

    def __init__(
        self, spark: SparkSession, query: str, values: Mapping[Knob, Value], directory: Path, control: Path
    ) -> None:
        self.spark, self.directory = spark, directory
        self._query, self._values, self._control = query, values, control
        self.names: list[str] = []
        self.spreads: list[str] = []
        self.rebalances: list[str] = []
        self.watches: list[str] = []
        self.asked: dict[Knob, Value] = {}
        self.formats: list[str] = []

    def read_stream(self, format: str) -> DataStreamReader:
        """`spark.readStream.format(format)` with the knobs as options; an option that you set yourself wins."""
        name = format.lower()  # as Spark reads it
        if name == "homeostat":
            from homeostat.lab.source import register

            register(self.spark)
        self.formats.append(name)
        rows = self._values.get(Knob(ROWS_PER_TRIGGER, self._query))
        partitions = self._values.get(Knob(SOURCE_PARTITIONS, self._query))
        reader = self.spark.readStream.format(format).options(**knob_options(name, rows, partitions))
        return reader.option("control", str(self._control)) if name == "homeostat" else reader

    def parallelism(self, name: str, start: int = DEFAULT_PARALLELISM) -> int:
        """How many partitions the step of that name gets: `df.repartition(ctx.parallelism("split"))`."""
        self.names.append(name)
        return self._asked_for(PARALLELISM, name, start)

    def spread(self, name: str, start: int = 1) -> Spread:
        """How far the hot keys of the step of that name are spread: `hs.keyed(…, spread=ctx.spread("count"))`."""
        spread = Spread(self._asked_for(SPREAD, name, start), name)
        self.spreads.append(name)
        if spread.instances > 1:
            self.names.append(combine_name(name))
        return spread

    def rebalanced(self, rows: DataFrame, name: str, start: int = 1) -> DataFrame:
        """The rows of a source, dealt to more instances if its own partitions are uneven. To be put right behind it."""
        spread = self._asked_for(SPREAD, name, start)
        self.rebalances.append(name)
        if spread == 1:
            return rows
        self.names.append(name)
        return rows.repartition(spread)

    def watched(self, rows: DataFrame, name: str, key: str | Sequence[str]) -> DataFrame:
        """The same rows, of which the loop sees the largest keys: for an operator that is not written with hs.keyed."""
        from homeostat.spark.sense.key_sketch import watched

        self._check_name(name)
        self.watches.append(name)
        return watched(rows, name, (key,) if isinstance(key, str) else tuple(key))

    def _asked_for(self, kind: str, name: str, start: int) -> int:
        self._check_name(name)
        knob = Knob(kind, f"{self._query}/{name}")
        self.asked[knob] = int(self._values.get(knob, start))
        return int(self.asked[knob])

    def _check_name(self, name: str) -> None:
        if not name or "/" in name:
            raise ConfigError(f"{name!r} cannot name a step", where=f"pipeline {self._query}", fix="use letters")


def knob_options(format: str, rows: Value | None, partitions: Value | None) -> dict[str, str]:
    """The knobs as the source of that name calls them; those that it has no option for are left out."""
    told = ((BOUND_OPTIONS.get(format), rows), (PARTITION_OPTIONS.get(format), partitions))
    return {name: str(int(value)) for name, value in told if name is not None and value is not None}


def combine_name(spread: str) -> str:
    """What the stage is called in which rows are added up before they reach the state."""
    return f"{spread}-combine"


Builder = Callable[[Context], Any]


def pipeline(
    objective: Wanted = None,
    *,
    name: str = "",
    trigger: float | str | None = None,
    **start: Value,
) -> Callable[[Builder], Pipeline]:
    """Make a function a pipeline that `homeostat run` can start, regulate and start again.

    It returns a `DataStreamWriter` that is not started. `start` names first values of knobs: `executors=2`,
    `state_partitions=8`, `source_partitions=4`, `rows_per_trigger=10_000`.
    """
    if callable(objective):
        raise ConfigError("brackets are missing", where="pipeline", fix="write @pipeline()")
    unknown = set(start) - {"executors", "state_partitions", "source_partitions", "rows_per_trigger"}
    if unknown:
        raise ConfigError(
            f"there is no knob {min(unknown)!r}",
            where="pipeline",
            fix="use executors, state_partitions, source_partitions or rows_per_trigger",
        )
    for knob, value in start.items():
        if isinstance(value, bool) or not isinstance(value, int) or value < 1:
            raise ConfigError(f"{knob} = {value!r} is not a whole number of at least 1", where="pipeline")
    trigger_s = _seconds(trigger)

    def decorate(build: Builder) -> Pipeline:
        called = name or build.__name__
        if not _NAME.fullmatch(called):
            raise ConfigError(f"{called!r} cannot name a query", where="pipeline", fix="use letters: name=…")
        return Pipeline(called, build, combined(objective), trigger_s, dict(start))

    return decorate


def _seconds(trigger: float | str | None) -> float | None:
    if trigger is None:
        return None
    try:
        seconds = units.parse_duration(trigger) if isinstance(trigger, str) else float(trigger)
    except (ValueError, TypeError) as error:
        raise ConfigError(f"trigger {error}", where="pipeline") from error
    if not 0 <= seconds < math.inf:
        raise ConfigError(f"trigger of {seconds:g} s is not a time", where="pipeline")
    return seconds


def built(pipeline: Pipeline, context: Context) -> Any:
    """The writer that the user's function returns; what is wrong with it is told with its line."""
    try:
        writer = pipeline.build(context)
    except HomeostatError:
        raise
    except Exception as error:
        words = str(error).strip().splitlines() or [""]
        raise ConfigError(f"{_place(pipeline, error)} raises {type(error).__name__}: {words[0]}") from error
    if not hasattr(writer, "foreachBatch"):
        raise ConfigError(
            f"its function returns {type(writer).__name__}, not a writer", fix="return df.writeStream…, without start()"
        )
    return writer


def _place(pipeline: Pipeline, error: Exception) -> str:
    code = getattr(pipeline.build, "__code__", None)
    frames = [
        f for f in traceback.extract_tb(error.__traceback__) if code is not None and f.filename == code.co_filename
    ]
    return f"{frames[-1].filename}:{frames[-1].lineno}" if frames else "its function"


def require_manageable(writer: Any, checkpoint: str) -> None:
    """Refuse what Homeostat would otherwise override or undo without a word."""
    trigger = _of_writer(writer, lambda held: str(held("trigger").toString()), "")
    if trigger in _ENDING:
        raise ConfigError(
            f"its trigger ends the query by itself ({_ENDING[trigger]}), and would be started again for ever",
            fix="leave .trigger(…) out, or use processingTime",
        )
    own = _of_writer(writer, lambda held: str(held("extraOptions").apply(_CHECKPOINT)), checkpoint)
    if own != checkpoint:
        raise ConfigError(
            f"its function sets {_CHECKPOINT} to {own}, but Homeostat keeps it in {checkpoint}",
            fix="leave the option out; to go on from that checkpoint, copy it there first",
        )


def written_trigger_s(writer: Any) -> float:
    """The processing-time trigger that a writer was given; NaN if it is of another kind or cannot be told."""
    return _of_writer(writer, lambda held: float(held("trigger").intervalMs()) / 1000.0, math.nan)


def _of_writer(writer: Any, read: Callable[[Callable[[str], Any]], _T], unknown: _T) -> _T:
    """What a writer was given; `unknown` where it was not, or where these private parts of Spark are others."""

    def held(name: str) -> Any:
        field = writer._jwrite.getClass().getDeclaredField(name)
        field.setAccessible(True)
        return field.get(writer._jwrite)

    try:
        return read(held)
    except Exception:
        return unknown


def running_trigger_s(query: StreamingQuery) -> float:
    """The same of a query that runs."""
    try:
        return float(query._jsq.streamingQuery().trigger().intervalMs()) / 1000.0
    except Exception:
        return math.nan
