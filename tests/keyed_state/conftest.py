"""A session on Spark, and queries that take batches one at a time."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.spark.cluster.session import ROCKSDB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

Batch = Sequence[Mapping[str, Any]]
Emitted = list[tuple[Any, ...]]
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
SETTINGS = {"spark.sql.shuffle.partitions": "2", PROVIDER: ROCKSDB, "spark.sql.session.timeZone": "Asia/Tokyo"}


@pytest.fixture(scope="session")
def spark(local_spark: SparkSession) -> SparkSession:
    pytest.importorskip("google.protobuf", reason="Spark's transformWithState in Python needs protobuf")
    session = local_spark.newSession()
    for name, value in SETTINGS.items():
        session.conf.set(name, value)
    return session


class Stage:
    """Runs what is built of a stream of rows, one batch after the other, and returns what each emitted."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark, self._directory = spark, directory
        self._source = directory / "source"
        self._source.mkdir()

    def play(
        self, build: Callable[[DataFrame], DataFrame], schema: str, batches: Sequence[Batch], *, clock: bool = False
    ) -> list[Emitted]:
        """With a clock a query is never done with what is there: each batch is then a run of its own."""
        emitted: list[Emitted] = []
        rows = self._spark.readStream.schema(schema).json(self._source.as_uri())
        writer = build(rows).writeStream.foreachBatch(lambda out, _: emitted[-1].extend(map(tuple, out.collect())))
        writer = writer.option("checkpointLocation", str(self._directory / "checkpoint")).outputMode("append")
        query = None if clock else writer.start()
        for number, batch in enumerate(batches):
            emitted.append([])
            self._arrive(number, batch)
            if query is None:
                writer.trigger(once=True).start().awaitTermination()
            else:
                query.processAllAvailable()
        if query is not None:
            query.stop()
        return emitted

    def _arrive(self, number: int, batch: Batch) -> None:
        """All at once: the source may look at any moment."""
        path = self._directory / f"{number}.json"
        path.write_text("\n".join(json.dumps(row, default=str) for row in batch))
        os.replace(path, self._source / path.name)


@pytest.fixture
def on_spark(spark: SparkSession, tmp_path: Path) -> Callable[..., list[Emitted]]:
    """`on_spark(build, schema, batches)`; the checkpoint is left behind in `tmp_path`."""
    return Stage(spark, tmp_path).play
