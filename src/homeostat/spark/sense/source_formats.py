"""One adapter for each source format: the names of its options, and how many rows have arrived at it.

A package that brings its own source registers an adapter for it. A format without an adapter works as well: its knobs
are then left out, and arrivals are known only once per batch.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from homeostat.core.configuration import Value
from homeostat.core.observation import NAN

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """The options of a source in a running query. `format` is in lower case, as Spark compares it."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def option(self, name: str) -> str:
        """The value of an option, or an empty string. Spark ignores the case of the name."""
        return {key.lower(): value for key, value in self.options.items()}.get(name.lower(), "")

    @property
    def holds_back(self) -> bool:
        """Whether rows can wait although Spark starts no batch, because a batch has a minimum size."""
        return bool(self.option("minOffsetsPerTrigger"))


@dataclass(frozen=True, slots=True)
class SourcePosition:
    """Where the latest batch left a source: it was read up to `offset`, and `rows` had arrived at `at_s`."""

    offset: Any
    rows: float = NAN
    at_s: float = NAN


def _unknown_rows(source: SourceOptions, position: SourcePosition, at_s: float) -> float:
    return NAN


def _needs_nothing(spark: SparkSession) -> None:
    """Spark ships the source."""


@dataclass(frozen=True, slots=True)
class SourceFormat:
    """What Homeostat knows about a source format.

    `bound_option` limits the rows of a batch and `partitions_option` sets the number of partitions; an empty name means
    that there is no such option. `arrived_rows` tells, without asking Spark, how many rows had arrived at a given time.
    `prepare` is called with the session before a pipeline reads from the format. `control_option` names an option with
    a file from which the source takes orders while it runs, as the experiment source does.
    """

    bound_option: str = ""
    partitions_option: str = ""
    arrived_rows: Callable[[SourceOptions, SourcePosition, float], float] = _unknown_rows
    prepare: Callable[[SparkSession], None] = _needs_nothing
    control_option: str = ""


_FORMATS: dict[str, SourceFormat] = {}


def register(name: str, source_format: SourceFormat) -> None:
    """Use this adapter for `readStream.format(name)`. The last registration of a name counts."""
    _FORMATS[name.lower()] = source_format


def format_of(name: str) -> SourceFormat:
    """The adapter of a format; an empty one if none is registered."""
    return _FORMATS.get(name.lower(), SourceFormat())


def latest_row(source: SourceOptions, position: SourcePosition, at_s: float) -> float:
    """How many rows had arrived at `at_s`, without asking Spark; NaN if only Spark knows."""
    return format_of(source.format).arrived_rows(source, position, at_s)


def knob_options(name: str, rows: Value | None, partitions: Value | None) -> dict[str, str]:
    """The knobs as options of that format. A knob without an option is left out."""
    known_format = format_of(name)
    options = ((known_format.bound_option, rows), (known_format.partitions_option, partitions))
    return {option: str(int(value)) for option, value in options if option and value is not None}


def _rows_by_the_clock(source: SourceOptions, position: SourcePosition, at_s: float) -> float:
    """`rate` creates rows at a fixed rate. While it ramps up, `position.rows` is NaN, and so is the result."""
    return position.rows + float(source.option("rowsPerSecond") or 1) * (at_s - position.at_s)


# Files and tables are bounded by files or bytes, not rows. `rate` and `rate-micro-batch` generate the load: a bound
# would change it.
register("kafka", SourceFormat("maxOffsetsPerTrigger", "minPartitions"))
register("rate", SourceFormat(partitions_option="numPartitions", arrived_rows=_rows_by_the_clock))
register("rate-micro-batch", SourceFormat(partitions_option="numPartitions"))
