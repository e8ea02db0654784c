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
    """What a query's source was told; `format` is its name in `readStream.format(...)`."""

    format: str
    options: Mapping[str, str] = field(default_factory=dict)


def sources_of(query: StreamingQuery) -> tuple[SourceOptions, ...]:
    """The sources of a running query, from its plan; the sources themselves are not touched."""
    leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()
    found = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.nodeName() == "StreamingRelationV2":
            found.append(SourceOptions(str(leaf.sourceName()), dict(leaf.extraOptions().asCaseSensitiveMap())))
    return tuple(found)


def latest_row(source: SourceOptions, offset: Any, at_s: float) -> float:
    """How many rows had arrived at that moment, without asking Spark; NaN where only Spark could tell."""
    if source.format == "homeostat" and isinstance(offset, Mapping) and _is_number(offset.get("started_s")):
        from homeostat.spark import control

        return float(control.latest_row(source.options, at_s, float(offset["started_s"])))
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
    for name in ("row", "offset"):
        if name in offset:
            return float(offset[name]) if _is_number(offset[name]) else NAN
    return _partitions(list(offset.values()))


def _partitions(topics: Sequence[Any]) -> float:
    """Topics with a number for each of their partitions, as Kafka has them."""
    if not topics or not all(isinstance(topic, Mapping) for topic in topics):
        return NAN
    numbers = [number for topic in topics for number in topic.values()]
    return float(math.fsum(numbers)) if all(map(_is_number, numbers)) else NAN


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
