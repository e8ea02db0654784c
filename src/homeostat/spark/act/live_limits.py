"""The limits on the batches of a running query, read and changed while it runs.

Spark has no API for this. Each run keeps its sources with their limits in `uniqueSources`, a map that every batch reads
anew. A source stops its query if it gets a kind of limit that it does not know. So a limit is only replaced by one of
the same kind, except where the source is known to accept another kind.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.query import StreamingQuery

ROWS, FILES, BYTES = "rows", "files", "bytes"
# A limit of at least this size counts as no limit. Spark's readers of Python sources write such a number, and so may
# people.
UNLIMITED = 2**61
_COMPOSITE, _ALL, _PYTHON = "CompositeReadLimit", "ReadAllAvailable", "PythonStreamingSourceReadLimit"
# Spark's names of the limits, with what they count and the method that reads or makes one.
_KINDS = {"ReadMaxRows": (ROWS, "maxRows"), "ReadMaxFiles": (FILES, "maxFiles"), "ReadMaxBytes": (BYTES, "maxBytes")}
_PYTHON_KINDS = {
    "ReadMaxRows": (ROWS, "max_rows"),
    "ReadMaxFiles": (FILES, "max_files"),
    "ReadMaxBytes": (BYTES, "max_bytes"),
}
# Sources that accept a limit although they have none. Kafka accepts one in rows. A file source can only be paused,
# because a number of rows cannot be converted to a number of files.
_KAFKA, _FILE_SOURCE = "KafkaMicroBatchStream", "FileStreamSource"
# This source accepts a limit, but then produces as many rows as before.
_DEAF = "RatePerMicroBatchStream"
_NO_SOURCES = "the query has not opened its sources yet"


@dataclass(frozen=True, slots=True)
class LimitedSource:
    """A source of a run and the limit that the run started with.

    `amount` is the largest number of `unit` in a batch; None without a limit. `with_amount` makes such a limit.
    """

    source: Any
    description: str
    unit: str
    amount: int | None
    with_amount: Callable[[int], Any]


class LiveLimits:
    """The limits of one run. `refusal` is why they cannot change; empty if they can.

    With `shared`, the rows of a batch are divided among the sources in proportion to their own limits. Otherwise each
    source may have all of them, as with the options that Homeostat sets for the sources of a pipeline.
    """

    def __init__(self, spark: SparkSession, query: StreamingQuery, *, shared: bool) -> None:
        self._spark, self._shared = spark, shared
        self._sources: list[LimitedSource] = []
        self._adjusted: list[LimitedSource] = []
        self.ready, self._pausable = False, False
        try:
            self._execution: Any = query._jsq.streamingQuery()
            self._original: Any = self._execution.uniqueSources()
            getattr(self._execution, "uniqueSources_$eq")
            self._read()
        except Exception as error:  # private members of Spark
            self.refusal = f"this release of Spark does not show the limits of a running query ({_reason(error)})"
            self.ready = True

    @property
    def rows(self) -> int | None:
        """The sum of the changeable limits in rows at the start of the run; None if a source had no such limit."""
        amounts = [each.amount for each in self._adjusted if each.unit == ROWS and each.amount is not None]
        return sum(amounts) if amounts and len(amounts) == len(self._adjusted) else None

    @property
    def counts_rows(self) -> bool:
        return all(each.unit == ROWS for each in self._adjusted)

    @property
    def adjusted(self) -> frozenset[str]:
        """The sources whose limits change, by their descriptions in progress reports."""
        return frozenset(each.description for each in self._adjusted)

    @property
    def pause_refusal(self) -> str:
        return "" if self._pausable else self.refusal or "one of its sources does not accept a limit"

    def change(self, rows: int, full_batch: float) -> None:
        """Limit the next batches to this many rows. `full_batch` is the number of rows in a full batch under the limits
        in files or bytes that the run started with."""
        amounts = [each.amount or 0 for each in self._adjusted]
        whole = sum(amounts) if self.counts_rows else full_batch
        replaced = self._original
        for each, amount in zip(self._adjusted, amounts, strict=True):
            if not self.counts_rows:
                target = amount * rows / whole
            else:
                target = rows * amount / whole if self._shared and all(amounts) else rows
            replaced = replaced.updated(each.source, each.with_amount(max(1, round(target))))
        self._put(replaced)

    def reset(self) -> None:
        """Return to the limits that the run started with."""
        self._put(self._original)

    def pause(self) -> Callable[[], None]:
        """Let no further batch begin. Returns a function that ends the pause."""
        before = self._execution.uniqueSources()
        paused = before
        for each in self._sources:
            paused = paused.updated(each.source, each.with_amount(0))
        self._put(paused)
        return lambda: self._put(before)

    def _put(self, limits: Any) -> None:
        getattr(self._execution, "uniqueSources_$eq")(limits)

    def _read(self) -> None:
        pairs, self.refusal = self._original.iterator(), _NO_SOURCES
        count, unlimited = 0, []
        while pairs.hasNext():
            pair = pairs.next()
            count += 1
            if (source := self._limited(pair._1(), pair._2())) is not None:
                self._sources.append(source)
            else:
                unlimited.append(str(pair._1().getClass().getSimpleName()))
        if not count:
            return
        self.ready, self._pausable = True, not unlimited
        in_rows = [each for each in self._sources if each.unit == ROWS]
        in_others = [each for each in self._sources if each.amount is not None and each.unit != ROWS]
        self._adjusted = in_rows or in_others
        self.refusal = "" if self._adjusted else f"no source has a limit that can be changed: {', '.join(unlimited)}"
        if not self._adjusted and not unlimited:
            self.refusal = "its file source has no limit; set maxFilesPerTrigger, so that Homeostat can change it"

    def _limited(self, source: Any, limit: Any) -> LimitedSource | None:
        """None if the source takes no limit, or if nothing is known about its kind of limit."""
        name, kind = str(source.getClass().getSimpleName()), str(limit.getClass().getSimpleName())
        limits: Any = self._spark._jvm.org.apache.spark.sql.connector.read.streaming.ReadLimit  # type: ignore[union-attr]
        description = str(source.toString())
        if name == _DEAF:
            return None
        if kind == _ALL:
            if name == _KAFKA:
                return LimitedSource(source, description, ROWS, None, limits.maxRows)
            if name == _FILE_SOURCE:
                return LimitedSource(source, description, FILES, None, limits.maxFiles)
            return None
        if kind == _PYTHON:
            return _python_limited(self._spark, source, limit, description)
        if kind == _COMPOSITE:
            return self._composite(source, limit, limits, description)
        if kind not in _KINDS:
            return None
        unit, method = _KINDS[kind]
        amount = int(getattr(limit, method)())
        return LimitedSource(source, description, unit, _finite(amount), getattr(limits, method))

    def _composite(self, source: Any, limit: Any, limits: Any, description: str) -> LimitedSource | None:
        """A limit that is combined with others, such as Kafka's minimum batch size. The others are kept."""
        parts = list(limit.getReadLimits())
        largest = [part for part in parts if str(part.getClass().getSimpleName()) in _KINDS]
        if len(largest) != 1:
            return None
        unit, method = _KINDS[str(largest[0].getClass().getSimpleName())]
        others = [part for part in parts if part is not largest[0]]

        def with_amount(amount: int) -> Any:
            new = [getattr(limits, method)(amount), *others]
            array: Any = self._spark.sparkContext._gateway.new_array(limits, len(new))  # type: ignore[union-attr]
            for index, part in enumerate(new):
                array[index] = part
            return limits.compositeLimit(array)

        amount = int(getattr(largest[0], method)())
        return LimitedSource(source, description, unit, _finite(amount), with_amount)


def _python_limited(spark: SparkSession, source: Any, limit: Any, description: str) -> LimitedSource | None:
    """Sources written in Python get their limits as JSON, and fail with any other."""
    values = json.loads(limit.json())
    if values.get("_type") not in _PYTHON_KINDS:
        return None
    unit, key = _PYTHON_KINDS[values["_type"]]
    make: Any = spark._jvm
    for part in str(limit.getClass().getName()).split("."):
        make = getattr(make, part)

    def with_amount(amount: int) -> Any:
        return make(json.dumps({**values, key: amount}))

    return LimitedSource(source, description, unit, _finite(int(values[key])), with_amount)


def _finite(amount: int) -> int | None:
    return amount if amount < UNLIMITED else None


def _reason(error: Exception) -> str:
    return str(error).strip().partition("\n")[0][:120]


def rows_of(progress: Any, descriptions: Sequence[str] | frozenset[str]) -> float:
    """The rows of a batch that came from these sources."""
    return float(sum(source["numInputRows"] for source in progress["sources"] if source["description"] in descriptions))


def more_waits(progress: Any, descriptions: Sequence[str] | frozenset[str]) -> bool:
    """Whether one of these sources reported more rows than the batch took."""
    return any(
        source["latestOffset"] is not None and source["latestOffset"] != source["endOffset"]
        for source in progress["sources"]
        if source["description"] in descriptions
    )
