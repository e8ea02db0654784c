"""Offsets of sources as numbers of rows, and the sources in the plan of a running query."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from homeostat.core.observation import NAN
from homeostat.spark.sense.source_formats import SourceOptions

if TYPE_CHECKING:
    from pyspark.sql.streaming.query import StreamingQuery

_RATE = re.compile(r"^RateStream.*rowsPerSecond=(\d+), rampUpTimeSeconds=0\b")


def sources_of(query: StreamingQuery) -> tuple[SourceOptions, ...]:
    """The sources of a running query, read from its plan. The sources themselves are not called."""
    leaves = query._jsq.streamingQuery().analyzedPlan().collectLeaves()
    sources = []
    for index in range(leaves.size()):
        leaf = leaves.apply(index)
        if leaf.nodeName() == "StreamingRelationV2":
            options = dict(leaf.extraOptions().asCaseSensitiveMap())
            sources.append(SourceOptions(str(leaf.sourceName()).lower(), options))
        elif (older := older_source(leaf)) is not None:
            sources.append(older)
    return tuple(sources)


def older_source(leaf: Any) -> SourceOptions | None:
    """The source at a leaf of a plan, if it uses Spark's version 1 API, as file sources do."""
    if leaf.nodeName() != "StreamingRelation":
        return None
    iterator, options = leaf.dataSource().options().iterator(), {}
    while iterator.hasNext():
        option = iterator.next()
        options[str(option._1())] = str(option._2())
    return SourceOptions(str(leaf.dataSource().className()).lower(), options)


def row_number(description: str, offset: Any) -> float:
    """How many rows come before an offset; NaN if the offset does not count rows.

    A number counts rows, except for the `rate` source, where it counts seconds. Offsets of file sources and tables
    count files and versions, not rows.
    """
    if rate := _RATE.match(description):
        return offset * float(rate.group(1)) if is_number(offset) else NAN
    if description.startswith(("FileStream", "Delta", "RateStream")):
        return NAN
    if is_number(offset):
        return float(offset)
    if not isinstance(offset, Mapping):
        return NAN
    for name in ("row", "offset"):  # a Kafka topic can have one of these names: then the value is not a number
        if is_number(offset.get(name)):
            return float(offset[name])
    return _sum_over_partitions(list(offset.values()))


def _sum_over_partitions(topics: Sequence[Any]) -> float:
    """Kafka's offsets: for each topic, a number for each partition."""
    if not topics or not all(isinstance(topic, Mapping) for topic in topics):
        return NAN
    numbers = [number for topic in topics for number in topic.values()]
    return float(math.fsum(numbers)) if all(map(is_number, numbers)) else NAN


def is_number(value: Any) -> bool:
    """Whether a JSON value is a finite number; JSON's true and false are not."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)
