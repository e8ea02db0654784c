"""Real checkpoints of every kind of stateful operator, each made once a session by a small query; tests get copies."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.spark.cluster.session import ROCKSDB

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

HDFS = "org.apache.spark.sql.execution.streaming.state.HDFSBackedStateStoreProvider"
PROVIDER = "spark.sql.streaming.stateStore.providerClass"
CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
FORMAT = "spark.sql.streaming.stateStore.checkpointFormatVersion"
PARTITIONS = 3
WORDS = 12
AN_HOUR_MS = 3_600_000
SCHEMA = "word STRING, amount BIGINT, at TIMESTAMP"
LATE = ("sessions", "pairs", "processor")  # their runs end with a batch without rows
KINDS = ("counts", "counts-hdfs", "counts-ids", "unique", "sessions", "pairs", "processor")


@pytest.fixture(scope="session")
def checkpoint_spark(local_spark: SparkSession) -> SparkSession:
    """A session with few state partitions, so that each test is quick."""
    session = local_spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", PARTITIONS)
    return session


class Workshop:
    """Runs the query of a kind on as many files as asked for, one batch each; what it has run before is kept."""

    def __init__(self, spark: SparkSession, directory: Path) -> None:
        self._spark = spark
        self.directory = directory

    @property
    def checkpoint(self) -> Path:
        return self.directory / "checkpoint"

    def run(self, kind: str, files: int, extra: Mapping[str, str] | None = None) -> None:
        source = self.directory / "source"
        source.mkdir(parents=True, exist_ok=True)
        for number in range(files):
            feed(source, number)
        session = self._spark.newSession()
        settings = {"spark.sql.shuffle.partitions": str(PARTITIONS), PROVIDER: ROCKSDB, CHANGELOG: "true"}
        for name, value in {**settings, **(extra or {})}.items():
            session.conf.set(name, value)
        rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(source.as_uri())
        result, mode = QUERIES[kind](rows)
        writer = result.writeStream.format("noop").outputMode(mode).option("checkpointLocation", str(self.checkpoint))
        writer.trigger(availableNow=True).start().awaitTermination()


def feed(source: Path, number: int) -> None:
    """File number n: every word once, n+1 of each, at second n; the first word in the first file only."""
    path = source / f"{number}.json"
    if path.exists():
        return
    rows = [
        {"word": f"w{word:02d}", "amount": number + 1, "at": f"2026-01-01T00:00:{number:02d}Z"}
        for word in range(0 if number == 0 else 1, WORDS)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    os.utime(path, (1e9 + number, 1e9 + number))  # the source takes the oldest first


def late(rows: DataFrame) -> DataFrame:
    return rows.withWatermark("at", "5 seconds")


def _counts(rows: DataFrame) -> tuple[DataFrame, str]:
    return rows.groupBy("word").sum("amount"), "update"


def _unique(rows: DataFrame) -> tuple[DataFrame, str]:
    return rows.dropDuplicates(["word"]), "append"


def _sessions(rows: DataFrame) -> tuple[DataFrame, str]:
    from pyspark.sql.functions import session_window

    return late(rows).groupBy(session_window("at", "10 seconds"), "word").count(), "append"


def _pairs(rows: DataFrame) -> tuple[DataFrame, str]:
    from pyspark.sql.functions import col, expr

    rows = late(rows)
    left_rows = rows.select(col("word").alias("l_word"), col("amount").alias("l_amount"), col("at").alias("l_at"))
    right_rows = rows.select(col("word").alias("r_word"), col("at").alias("r_at"))
    near = expr("l_word = r_word AND r_at BETWEEN l_at AND l_at + INTERVAL 5 SECONDS")
    return left_rows.join(right_rows, near), "append"


def _processor(rows: DataFrame) -> tuple[DataFrame, str]:
    """Keeps the sum as a value, the amounts as a list, what it has seen as a map, and sets a timer for each."""
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Keeper(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._handle = handle
            self._total = handle.getValueState("total", "amount BIGINT")
            self._amounts = handle.getListState("amounts", "amount BIGINT")
            self._times = handle.getMapState("seen", "amount BIGINT", "times BIGINT")

        def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: N802
            for row in rows:
                total = self._total.get()
                self._total.update(((total[0] if total else 0) + row.amount,))
                self._amounts.appendValue((row.amount,))
                self._times.updateValue((row.amount,), (1,))
                self._handle.registerTimer(int(row.at.timestamp() * 1000) + AN_HOUR_MS)
            yield Row(word=key[0])

        def close(self) -> None: ...

    # With timers of processing time a query never comes to the end of what is available.
    words = late(rows).groupBy("word").transformWithState(Keeper(), "word STRING", "Append", "EventTime")
    return words, "append"


def _unique_lately(rows: DataFrame) -> tuple[DataFrame, str]:
    return late(rows).dropDuplicatesWithinWatermark(["word"]), "append"


def _in_pandas(rows: DataFrame) -> tuple[DataFrame, str]:
    """Keeps the sum of each word."""
    import pandas as pd
    from pyspark.sql.streaming.state import GroupState

    def total(key: Any, frames: Iterator[pd.DataFrame], state: GroupState) -> Iterator[pd.DataFrame]:
        total_before = state.get[0] if state.exists else 0
        state.update((total_before + sum(int(frame["amount"].sum()) for frame in frames),))
        yield pd.DataFrame({"word": [key[0]]})

    totals = rows.groupBy("word").applyInPandasWithState(total, "word STRING", "total BIGINT", "update", "NoTimeout")
    return totals, "update"


def _everything(rows: DataFrame) -> tuple[DataFrame, str]:
    return rows.groupBy().count(), "update"


QUERIES: Mapping[str, Callable[[DataFrame], tuple[DataFrame, str]]] = {
    "counts": _counts,
    "counts-hdfs": _counts,
    "counts-ids": _counts,
    "unique": _unique,
    "sessions": _sessions,
    "pairs": _pairs,
    "processor": _processor,
    "unique-lately": _unique_lately,
    "in-pandas": _in_pandas,
    "everything": _everything,
}


@pytest.fixture(scope="session")
def masters(checkpoint_spark: SparkSession, tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The directory of a kind, with `source` and `checkpoint`; nobody may change it."""
    directories: dict[str, Path] = {}

    def master(kind: str) -> Path:
        if kind not in directories:
            workshop = Workshop(checkpoint_spark, tmp_path_factory.mktemp(kind))
            _make(workshop, kind)
            directories[kind] = workshop.directory
        return directories[kind]

    return master


def _make(workshop: Workshop, kind: str) -> None:
    if kind == "processor":
        pytest.importorskip("google.protobuf", reason="Spark's transformWithState in Python needs protobuf")
    if kind == "counts-hdfs":
        workshop.run(kind, 4, {PROVIDER: HDFS})
    elif kind == "counts-ids":
        workshop.run(kind, 3, {FORMAT: "2"})
    else:
        half = 1 if kind in LATE else 2
        workshop.run(kind, half, {CHANGELOG: "false"})  # a snapshot with every batch
        workshop.run(kind, 2 * half)  # from then on only what a batch changes


@pytest.fixture
def checkpoint_of(masters: Callable[[str], Path], tmp_path: Path) -> Callable[[str], Path]:
    """A copy of the checkpoint of a kind, for the test to do with as it likes."""

    def copy(kind: str) -> Path:
        target = tmp_path / kind
        if not target.exists():
            shutil.copytree(masters(kind) / "checkpoint", target)
        return target

    return copy
