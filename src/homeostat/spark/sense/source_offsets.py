"""Offsets as numbers of rows, and how many rows a source has got by now where that can be told without Spark."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from homeostat.core.observation import NAN

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_RATE = re.compile(r"^RateStream.*rowsPerSecond=(\d+), rampUpTimeSeconds=0\b")


@dataclass(frozen=True, slots=True)
class SourceOptions:
    """What a query's source was told; `format` is its name in `readStream.format(...)`, in small letters."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)

    def told(self, option: str) -> str:
        """Empty if it was told nothing; Spark makes no difference between small letters and capitals."""
        return {name.lower(): value for name, value in self.options.items()}.get(option.lower(), "")

    @property
    def holds_back(self) -> bool:
        """Whether rows may wait though Spark finds nothing to do: a batch is to have more of them."""
        return bool(self.told("minOffsetsPerTrigger"))


def sources_of(query: StreamingQuery) -> tuple[SourceOptions, ...]:
    """The sources of a running query, from its plan; the sources themselves are not touched."""
    leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()
    found = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.nodeName() == "StreamingRelationV2":
            found.append(SourceOptions(str(leaf.sourceName()).lower(), dict(leaf.extraOptions().asCaseSensitiveMap())))
        elif (older := older_source(leaf)) is not None:
            found.append(older)
    return tuple(found)


def older_source(leaf: Any) -> SourceOptions | None:
    """Of a leaf of a plan, if it is a source of Spark's older kind, to which those of files belong."""
    if leaf.nodeName() != "StreamingRelation":
        return None
    options, told = leaf.dataSource().options().iterator(), {}
    while options.hasNext():
        option = options.next()
        told[str(option._1())] = str(option._2())
    return SourceOptions(str(leaf.dataSource().className()).lower(), told)


def latest_row(source: SourceOptions, offset: Any, at_s: float, seen_rows: float = NAN, seen_s: float = NAN) -> float:
    """How many rows had arrived at that moment, without asking Spark; NaN where only Spark could tell.

    `offset` is the one that the source was read up to, and `seen_rows` had arrived at `seen_s` as Spark saw it.
    """
    if source.format == "homeostat" and isinstance(offset, Mapping) and _is_number(offset.get("started_s")):
        from homeostat.lab import source_control

        return float(source_control.latest_row(source.options, at_s, float(offset["started_s"])))
    if source.format == "rate":
        # It makes its rows by the clock, in whole seconds; while it ramps up, what was seen is unknown already.
        return seen_rows + float(source.told("rowsPerSecond") or 1) * (at_s - seen_s)
    return NAN


def row_number(description: str, offset: Any) -> float:
    """How many rows lie before an offset; NaN where it does not say.

    Numbers are rows, except in the `rate` source, whose offsets are seconds. What comes from a file source or a table
    counts files and versions instead.
    """
    if rate := _RATE.match(description):
        return offset * float(rate.group(1)) if _is_number(offset) else NAN
    if description.startswith(("FileStream", "Delta", "RateStream")):
        return NAN
    if _is_number(offset):
        return float(offset)
    if not isinstance(offset, Mapping):
        return NAN
    for name in ("row", "offset"):  # of which a topic may have the name too
        if _is_number(offset.get(name)):
            return float(offset[name])
    return _partitions(list(offset.values()))


def _partitions(topics: Sequence[Any]) -> float:
    """Topics with a number for each of their partitions, as Kafka has them."""
    if not topics or not all(isinstance(topic, Mapping) for topic in topics):
        return NAN
    numbers = [number for topic in topics for number in topic.values()]
    return float(math.fsum(numbers)) if all(map(_is_number, numbers)) else NAN


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
