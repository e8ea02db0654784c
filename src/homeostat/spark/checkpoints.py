"""What a streaming query's checkpoint says about itself, read through Hadoop's file systems."""

from __future__ import annotations

import json
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

_PARTITIONS = "spark.sql.shuffle.partitions"


@dataclass(frozen=True, slots=True)
class Batches:
    """The latest batch that was begun, and the latest that was finished; -1 if there is none."""

    begun: int = -1
    finished: int = -1

    @property
    def one_is_open(self) -> bool:
        return self.begun > self.finished


class Checkpoint:
    """Read only: whatever changes a checkpoint is left to Spark."""

    def __init__(self, spark: SparkSession, location: str) -> None:
        self.location = location
        self._context: Any = spark.sparkContext
        self._jvm: Any = self._context._jvm

    def batches(self) -> Batches:
        return Batches(self._latest("offsets"), self._latest("commits"))

    def state_partitions(self, batch: int | None = None) -> int | None:
        """How many partitions the state has after this batch, or after the latest that was begun."""
        batch = self._latest("offsets") if batch is None else batch
        if batch < 0:
            return None
        # A version line, the metadata, then one line per source.
        lines = self._read("offsets", str(batch)).splitlines()
        value = json.loads(lines[1]).get("conf", {}).get(_PARTITIONS)
        return None if value is None else int(value)

    def open_repartition(self) -> int | None:
        """The number of partitions that an interrupted repartitioning was after."""
        batches = self.batches()
        if not batches.one_is_open or batches.begun < 1:
            return None
        wanted, before = self.state_partitions(batches.begun), self.state_partitions(batches.begun - 1)
        return wanted if wanted != before else None

    def has_state(self) -> bool:
        state = self._path("state")
        return bool(self._files.exists(state)) and len(self._files.listStatus(state)) > 0

    @cached_property
    def _files(self) -> Any:
        return self._path("").getFileSystem(self._context._jsc.hadoopConfiguration())

    def _latest(self, log: str) -> int:
        path = self._path(log)
        if not self._files.exists(path):
            return -1
        names = [str(status.getPath().getName()) for status in self._files.listStatus(path)]
        return max((int(name) for name in names if name.isdigit()), default=-1)

    def _read(self, *parts: str) -> str:
        stream = self._files.open(self._path(*parts))
        try:
            return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
        finally:
            stream.close()

    def _path(self, *parts: str) -> Any:
        return self._jvm.org.apache.hadoop.fs.Path("/".join((self.location, *filter(None, parts))))
