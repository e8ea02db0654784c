"""States that are rescaled, saved and put back at random while the driver is killed: every row counts once.

Run as a program this file is that driver: `python test_state_ledger.py HOME SEED LIFE KIND SINK FILES ACTIONS LAST`.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

import homeostat as hs
from homeostat.checkpoint import rescale, restore, savepoints, state_reader
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.state_tables import tables
from homeostat.core.errors import HomeostatError
from homeostat.spark.cluster.process_keeper import Keeper
from homeostat.spark.cluster.session import build_session, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SCHEMA = "word STRING, amount BIGINT, at TIMESTAMP"
WORDS, ROWS_PER_FILE = 9, 6
MOST_PARTITIONS = 5
LIMIT_S = 400.0
KINDS = ("windows", "unique", "sessions", "pairs", "processor", "keyed")
PYTHON_STATE = ("processor", "keyed")
MOST_SPREAD = 3
SINKS = ("files", "foreachBatch")
# Killed while it rescales to five partitions. The next life finishes that, then saves, restores and rescales.
FEW = ((50, "keyed", "foreachBatch"),)
MANY = [
    (2, "pairs", "files"),
    *((seed, KINDS[seed % len(KINDS)], SINKS[seed // len(KINDS) % len(SINKS)]) for seed in range(100, 130)),
]


@dataclass(frozen=True)
class Extent:
    """How often the driver is killed, how many random actions each of its lives has, and how many files it reads."""

    kills: int
    actions: int
    files: int


SHORT, LONG = Extent(1, 3, 4), Extent(2, 6, 8)


@dataclass(frozen=True)
class Place:
    """Where one run keeps its things, and how many files it reads."""

    home: Path
    sink: str
    files: int

    @property
    def source(self) -> Path:
        return self.home / "source"

    @property
    def out(self) -> Path:
        return self.home / "out"

    @property
    def steps(self) -> Path:
        return self.home / "steps"

    @property
    def checkpoint(self) -> Checkpoint:
        return Checkpoint(str(self.home / "checkpoint"), LocalFiles())

    @property
    def fed(self) -> int:
        return len(list(self.source.glob("*.json")))

    def feed(self, upto: int) -> None:
        """File by file, what is in them depends on the number alone."""
        self.source.mkdir(parents=True, exist_ok=True)
        for number in range(self.fed, min(upto, self.files)):
            rows = [
                {
                    "word": f"w{(number * 5 + each) % WORDS}",
                    "amount": number * ROWS_PER_FILE + each,
                    "at": f"2026-01-01T00:{number * 3 // 60:02d}:{number * 3 % 60:02d}.{each}00Z",
                }
                for each in range(ROWS_PER_FILE)
            ]
            draft = self.home / "draft"
            draft.write_text("\n".join(map(json.dumps, rows)))
            os.utime(draft, (1e9 + number, 1e9 + number))  # the source takes the oldest first
            draft.rename(self.source / f"{number:03d}.json")

    def note(self, step: str) -> None:
        with self.steps.open("a") as file:
            file.write(f"{step}\n")


# The queries, each with as many batches as there are files


def _windows(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.groupBy(f.window("at", "10 seconds"), "word").agg(f.sum("amount").alias("amount"))


def _unique(rows: DataFrame) -> DataFrame:
    return rows.dropDuplicates(["word"])


def _sessions(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    return rows.groupBy(f.session_window("at", "4 seconds"), "word").agg(f.sum("amount").alias("amount"))


def _pairs(rows: DataFrame) -> DataFrame:
    from pyspark.sql import functions as f

    left = rows.selectExpr("word", "amount", "at")
    right = rows.selectExpr("word AS r_word", "amount AS r_amount", "at AS r_at")
    return left.join(right, f.expr("word = r_word AND r_at BETWEEN at AND at + INTERVAL 9 SECONDS"))


def _processor(rows: DataFrame) -> DataFrame:
    from pyspark.sql import Row
    from pyspark.sql.streaming.stateful_processor import StatefulProcessor, StatefulProcessorHandle

    class Sums(StatefulProcessor):
        def init(self, handle: StatefulProcessorHandle) -> None:
            self._sum = handle.getValueState("sum", "amount BIGINT")
            self._amounts = handle.getListState("amounts", "amount BIGINT")
            self._times = handle.getMapState("times", "amount BIGINT", "times BIGINT")

        def handleInputRows(self, key: Any, rows: Iterator[Row], timers: Any) -> Iterator[Row]:  # noqa: N802
            kept = self._sum.get()
            total = kept[0] if kept else 0
            for row in rows:
                total += row.amount
                self._amounts.appendValue((row.amount,))
                self._times.updateValue((row.amount % 3,), (total,))
            self._sum.update((total,))
            yield Row(word=key[0], amount=total)

        def close(self) -> None: ...

    schema = "word STRING, amount BIGINT"
    return rows.groupBy("word").transformWithState(Sums(), schema, "Append", "None")


def _keyed(rows: DataFrame) -> DataFrame:
    """Each time with another spread, which must not matter; which one follows from the seed."""
    return hs.keyed(
        rows.select("word", "amount"),
        key="word",
        zero=(0, 0),
        add=lambda so_far, row: (so_far[0] + 1, so_far[1] + row.amount),
        merge=lambda one, other: (one[0] + other[0], one[1] + other[1]),
        state="times BIGINT, amount BIGINT",
        spread=random.randint(1, MOST_SPREAD),
        output_mode="append",
    )


QUERIES: Mapping[str, Callable[[DataFrame], DataFrame]] = {
    "windows": _windows,
    "unique": _unique,
    "sessions": _sessions,
    "pairs": _pairs,
    "processor": _processor,
    "keyed": _keyed,
}


def _keep_once(out: Path) -> Callable[[DataFrame, int], None]:
    """The strictest of sinks: a batch whose number it knows is left out, whatever is in it."""
    out.mkdir(parents=True, exist_ok=True)

    def write(batch: DataFrame, number: int) -> None:
        path = out / f"{number}.json"
        if not path.exists():
            draft = out / f".{number}.draft"
            draft.write_text("\n".join(_lines(batch)))
            draft.rename(path)

    return write


def run_query(spark: SparkSession, place: Place, kind: str) -> None:
    """All that has been fed, one file a batch; an open batch is done again first."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", "3")
    session.conf.set("spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled", "true")
    rows = session.readStream.schema(SCHEMA).option("maxFilesPerTrigger", 1).json(place.source.as_uri())
    frame = QUERIES[kind](rows.withWatermark("at", "5 seconds"))
    writer = frame.writeStream.outputMode("append").option("checkpointLocation", place.checkpoint.location)
    if place.sink == "files":
        writer = writer.format("json").option("path", str(place.out))
    else:
        writer = writer.foreachBatch(_keep_once(place.out))
    writer.trigger(availableNow=True).start().awaitTermination()


def read_sink(spark: SparkSession, place: Place) -> list[str]:
    """Every row that the sink holds, in no order."""
    if place.sink == "files":
        return sorted(_lines(spark.read.json(str(place.out))))
    return sorted(line for path in place.out.glob("*.json") for line in path.read_text().splitlines())


def _lines(frame: DataFrame) -> list[str]:
    return [row[0] for row in frame.selectExpr("to_json(struct(*))").collect()]


def read_state(spark: SparkSession, place: Place) -> dict[str, list[str]]:
    at = place.checkpoint
    batch = at.batches().finished
    return {
        each.view: sorted(
            str(row.asDict(recursive=True))
            for row in state_reader.table(spark, at, each, batch).drop("partition_id").collect()
        )
        for each in tables(at, batch)
    }


# The driver, one life of it


def live(place: Place, seed: int, life: int, kind: str, actions: int, *, last: bool) -> None:
    spark = _session(place.home / f"spark-{life}")
    chance = random.Random(f"{seed}/{life}")
    random.seed(f"{seed}/{life}")
    place.note("up")
    rescale.finish(spark, place.checkpoint, tell=place.note)
    if place.fed:
        run_query(spark, place, kind)
    feed_and_run(spark, place, kind, 1)
    for _ in range(actions):
        action = chance.choice((_rescale, _rescale, _savepoint, _restore, _run))
        place.note(action.__name__)
        action(spark, place, kind, chance)
    if last:
        feed_and_run(spark, place, kind, place.files)
    place.note("end")
    spark.stop()


def _run(spark: SparkSession, place: Place, kind: str, chance: random.Random) -> None:
    feed_and_run(spark, place, kind, chance.randint(1, 2))


def feed_and_run(spark: SparkSession, place: Place, kind: str, count: int) -> None:
    """One file at a time: Spark puts a file that it had noted when it was killed into one batch with the next."""
    for _ in range(min(count, place.files - place.fed)):
        place.feed(place.fed + 1)
        run_query(spark, place, kind)


def _rescale(spark: SparkSession, place: Place, kind: str, chance: random.Random) -> None:
    there = place.checkpoint.state_partitions()
    partitions = chance.choice([count for count in range(1, MOST_PARTITIONS + 1) if count != there])
    sink = str(place.out) if place.sink == "files" else ""
    rescale.rescale(spark, place.checkpoint, partitions, verify=chance.random() < 0.7, sink=sink, tell=place.note)


def _savepoint(spark: SparkSession, place: Place, kind: str, chance: random.Random) -> None:
    savepoints.make(place.checkpoint)


def _restore(spark: SparkSession, place: Place, kind: str, chance: random.Random) -> None:
    """The newest savepoint; it must be refused exactly if a sink has seen more than it holds."""
    all_savepoints = savepoints.list_savepoints(place.checkpoint)
    if not all_savepoints:
        return
    ahead = restore.received_since(place.checkpoint, all_savepoints[-1])
    try:
        restore.restore(place.checkpoint, all_savepoints[-1].name)
        assert not ahead
    except HomeostatError:
        assert ahead


def _session(directory: Path) -> SparkSession:
    quiet = {"spark.ui.enabled": "false", "spark.driver.memory": "512m"}
    return build_session(
        spark_conf(master="local[1]", app_name="ledger", executors=1, directory=directory, extra=quiet)
    )


# The one who kills it


def kill_and_start_again(place: Place, seed: int, kind: str, extent: Extent, log: Path) -> None:
    chance = random.Random(seed)
    keeper = Keeper()  # with it the driver ends too if this test is cut short
    try:
        for life in range(extent.kills):
            pid = keeper.start("driver", _command(place, seed, life, kind, extent), log=log)
            _wait_for_steps(place, keeper, chance.randint(1, extent.actions + 2), log)
            time.sleep(chance.random())  # anywhere between two steps
            if keeper.code("driver") is None:
                os.killpg(pid, signal.SIGKILL)  # Spark's process dies in the same moment
                keeper.wait("driver")
            place.note(f"killed in life {life}")
        keeper.start("driver", _command(place, seed, extent.kills, kind, extent, "last"), log=log)
        assert keeper.wait("driver", LIMIT_S) == 0, log.read_text()[-3000:]
    finally:
        keeper.close()


def _command(place: Place, seed: int, life: int, kind: str, extent: Extent, last: str = "") -> list[str]:
    numbers = (str(extent.files), str(extent.actions))
    return [sys.executable, __file__, str(place.home), str(seed), str(life), kind, place.sink, *numbers, last]


def _wait_for_steps(place: Place, keeper: Keeper, count: int, log: Path) -> None:
    """Until so many more steps were noted, or it ended before it could be killed."""
    before = _steps(place)
    deadline = time.monotonic() + LIMIT_S
    while _steps(place) < before + count and keeper.code("driver") is None:
        assert time.monotonic() < deadline, log.read_text()[-3000:]
        time.sleep(0.02)
    assert keeper.code("driver") in (None, 0), log.read_text()[-3000:]


def _steps(place: Place) -> int:
    return len(place.steps.read_text().splitlines()) if place.steps.exists() else 0


def play(spark: SparkSession, home: Path, seed: int, kind: str, sink: str, extent: Extent) -> None:
    if kind in PYTHON_STATE:
        pytest.importorskip("google.protobuf", reason="Spark's transformWithState in Python needs protobuf")
    print(f"seed {seed}: {kind} into {sink}")
    real, reference = (Place(home / name, sink, extent.files) for name in ("real", "reference"))
    for place in (real, reference):
        place.home.mkdir()
    reference.feed(extent.files)
    random.seed(seed)
    with ThreadPoolExecutor(1) as beside:
        undisturbed = beside.submit(run_query, spark, reference, kind)
        kill_and_start_again(real, seed, kind, extent, home / "driver.log")
        undisturbed.result()
    steps = real.steps.read_text()
    assert read_sink(spark, real) == read_sink(spark, reference) != [], steps
    assert read_state(spark, real) == read_state(spark, reference), steps


@pytest.mark.parametrize(("seed", "kind", "sink"), FEW)
def test_every_row_counts_once(spark: SparkSession, tmp_path: Path, seed: int, kind: str, sink: str) -> None:
    play(spark, tmp_path, seed, kind, sink, SHORT)


@pytest.mark.soak
@pytest.mark.parametrize(("seed", "kind", "sink"), MANY)
def test_every_row_counts_once_however_often(
    spark: SparkSession, tmp_path: Path, seed: int, kind: str, sink: str
) -> None:
    play(spark, tmp_path, seed, kind, sink, LONG)


if __name__ == "__main__":
    home, seed, life, kind, sink, files, actions, last = sys.argv[1:]
    live(Place(Path(home), sink, int(files)), int(seed), int(life), kind, int(actions), last=bool(last))
