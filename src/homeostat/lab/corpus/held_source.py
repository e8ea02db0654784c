"""The experiment source with a switch that makes it slow to report new rows."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TYPE_CHECKING

from homeostat.lab.corpus.row_work import pause
from homeostat.lab.source import Offset, Source, StreamReader

if TYPE_CHECKING:
    from pyspark.sql import SparkSession
    from pyspark.sql.streaming.datasource import ReadLimit
    from pyspark.sql.types import StructType


class HeldReader(StreamReader):
    """The option `hold` names the switch: the source waits for this many seconds before it reports new rows."""

    def __init__(self, options: MutableMapping[str, str]) -> None:
        super().__init__(options)
        self._hold = {name.lower(): value for name, value in options.items()}["hold"]

    def latestOffset(self, start: Offset, limit: ReadLimit) -> Offset:  # noqa: N802
        pause(self._hold)
        return super().latestOffset(start, limit)


class HeldSource(Source):
    def streamReader(self, schema: StructType) -> HeldReader:  # noqa: N802
        return HeldReader(self.options)


def register(spark: SparkSession) -> None:
    """Make the queries of this session read this source under the name of the experiment source."""
    spark.dataSource.register(HeldSource)
