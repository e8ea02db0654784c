"""The streaming source `homeostat`: its rows follow a load profile and can be replayed, and it limits batches."""

from __future__ import annotations

import time
from collections.abc import Iterator, MutableMapping, Sequence
from math import inf
from typing import TYPE_CHECKING, Any

from pyspark.sql.datasource import DataSource, DataSourceStreamReader, InputPartition
from pyspark.sql.streaming.datasource import ReadAllAvailable, ReadLimit, ReadMaxRows, SupportsTriggerAvailableNow

from homeostat.lab.source_control import FORMAT, Feed, add_load_step, latest_row, write_control
from homeostat.spark.python_workers import spare_the_collector

if TYPE_CHECKING:
    import pyarrow as pa
    from pyspark.sql import SparkSession
    from pyspark.sql.types import StructType

__all__ = ["FORMAT", "Source", "add_load_step", "latest_row", "register", "write_control"]

SCHEMA = "row LONG, word STRING, arrived TIMESTAMP"
ROWS_PER_RECORD_BATCH = 10_000  # Arrow's default in Spark
NO_LIMIT = 2**62

Offset = dict[str, Any]


def register(spark: SparkSession) -> None:
    """Make `spark.readStream.format("homeostat")` work in this session."""
    spark.dataSource.register(Source)


class Source(DataSource):
    """See docs/reference/experiment-source.md for the options."""

    @classmethod
    def name(cls) -> str:
        return FORMAT

    def schema(self) -> str:
        return SCHEMA

    def streamReader(self, schema: StructType) -> StreamReader:  # noqa: N802
        return StreamReader(self.options)


class Rows(InputPartition):
    """The rows from `start` to `stop`, which arrived evenly between `first_s` and `last_s`."""

    def __init__(self, start: int, stop: int, first_s: float, last_s: float) -> None:
        self.start, self.stop = start, stop
        self.first_s, self.last_s = first_s, last_s


class StreamReader(DataSourceStreamReader, SupportsTriggerAvailableNow):
    """An offset has the number of rows read so far and the start time of the profile.

    The start time is in the offset so that a restarted query continues the same profile.
    """

    def __init__(self, options: MutableMapping[str, str]) -> None:
        self._feed = Feed.from_options(options)
        self._initial: Offset | None = None
        self._latest: Offset | None = None
        self._no_later_than_s = inf

    def initialOffset(self) -> Offset:  # noqa: N802
        # Spark calls this at every trigger until the first row arrives: the start time must stay the same.
        if self._initial is None:
            start_s = time.time() if self._feed.start_s is None else self._feed.start_s
            self._initial = _offset(0, round(start_s, 3))
        return self._initial

    def getDefaultReadLimit(self) -> ReadLimit:  # noqa: N802
        return ReadMaxRows(self._feed.rows_per_trigger or NO_LIMIT)

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        row, started_s = start["row"], start["started_s"]
        latest_row = row if self._latest is None else max(row, self._latest["row"])
        # A clock that is set back, or a load that changes the past, must not take rows away.
        latest = max(latest_row, self._feed.latest_row(min(time.time(), self._no_later_than_s), started_s))
        self._latest = _offset(latest, started_s)
        if isinstance(limit, ReadAllAvailable):
            return self._latest
        assert isinstance(limit, ReadMaxRows)
        return _offset(int(min(latest, row + self._feed.bound, row + limit.max_rows)), started_s)

    def reportLatestOffset(self) -> Offset | None:  # noqa: N802
        return self._latest

    def prepareForTriggerAvailableNow(self) -> None:  # noqa: N802
        self._no_later_than_s = time.time()

    def partitions(self, start: Offset, end: Offset) -> Sequence[Rows]:
        first, rows, started_s = start["row"], end["row"] - start["row"], end["started_s"]
        edges = self._feed.cut(first, rows) if rows > 0 else []
        now_s = time.time()
        arrived_s = [self._feed.arrival_s(edge, now_s, started_s) for edge in edges]
        cut = zip(edges, edges[1:], arrived_s, arrived_s[1:], strict=False)
        return [Rows(*part) for part in cut if part[1] > part[0]]

    def read(self, partition: InputPartition) -> Iterator[pa.RecordBatch]:
        assert isinstance(partition, Rows)
        spare_the_collector()
        for start in range(partition.start, partition.stop, ROWS_PER_RECORD_BATCH):
            yield self._record_batch(partition, start, min(partition.stop, start + ROWS_PER_RECORD_BATCH))

    def _record_batch(self, part: Rows, start: int, stop: int) -> pa.RecordBatch:
        import numpy as np
        import pyarrow as pa

        rows = np.arange(start, stop)
        arrived_s = np.interp(rows, (part.start, part.stop), (part.first_s, part.last_s))
        return pa.RecordBatch.from_arrays(
            [
                pa.array(rows, pa.int64()),
                pa.array(self._feed.profile.words(start, stop), pa.string()),
                pa.array((arrived_s * 1e6).astype(np.int64), pa.timestamp("us", "UTC")),
            ],
            names=["row", "word", "arrived"],
        )


def _offset(row: int, started_s: float) -> Offset:
    return {"row": row, "started_s": started_s}
