"""Measures how long a query pauses when its state is repartitioned, by phase, and for a plain restart."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from statistics import median
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from homeostat.checkpoint import pause_times, savepoints
from homeostat.checkpoint.files import LocalFiles, Made, local_path
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.core.configuration import STATE_PARTITIONS, TRIGGER_S, Knob, Value
from homeostat.core.errors import HomeostatError
from homeostat.lab.bench.ground import machine
from homeostat.spark.act.deadline import Deadline
from homeostat.spark.act.managed_query import ManagedQuery
from homeostat.spark.cluster.session import build_session, spark_conf

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

KEYS = (10_000, 100_000, 1_000_000)
REPEATS = 3
NAME = "keys"
PARTITIONS, OTHER = 4, 6
TRIGGER = 1.0
MOST_ROWS = 100_000  # a batch
REPLAYED = 8  # batches since the last snapshot, which by default comes every ten
LIMIT_S = 600.0
_CHANGELOG = "spark.sql.streaming.stateStore.rocksdb.changelogCheckpointing.enabled"
_STATE, _TRIGGER = Knob(STATE_PARTITIONS, NAME), Knob(TRIGGER_S, NAME)

Tell = Callable[[str], None]


def measure(*, keys: Sequence[int], repeats: int, tell: Tell) -> dict[str, Any]:
    with _session() as (spark, directory):
        figures = {str(count): _measure_keys(spark, directory / str(count), count, repeats, tell) for count in keys}
    return {"partitions": [PARTITIONS, OTHER], "repeats": repeats, "keys": figures, "machine": machine()}


def _measure_keys(spark: SparkSession, directory: Path, keys: int, repeats: int, tell: Tell) -> dict[str, Any]:
    counting = Counting(spark, directory, keys)
    tell(f"{keys:,} keys: building up the state")
    counting.start()
    try:
        tell(f"{keys:,} keys: plain restarts")
        snapshot = [counting.restart_s(changelog=False) for _ in range(repeats)]
        changelog = [counting.restart_s(changelog=True) for _ in range(repeats)]
        tell(f"{keys:,} keys: rescales")
        pauses_by_verify: dict[bool, list[dict[str, float]]] = {True: [], False: []}
        for _ in range(repeats):  # in turn, so that neither reads a smaller state than the other
            for verify, pauses in pauses_by_verify.items():
                pauses.append(counting.rescale_s(verify))
    finally:
        counting.query.stop()
    tell(f"{keys:,} keys: savepoints")
    savepoint_s = {
        name: [_savepoint_s(counting.query.checkpoint, files) for _ in range(repeats)] for name, files in _WAYS.items()
    }
    return {
        "state_bytes": sum(entry.size for entry in LocalFiles().walk(counting.query.checkpoint.path("state"))),
        "rescale": {"verified": _middle(pauses_by_verify[True]), "not_verified": _middle(pauses_by_verify[False])},
        "restart_s": {"from_a_snapshot": median(snapshot), "from_a_changelog": median(changelog)},
        "savepoint_s": {name: median(seconds) for name, seconds in savepoint_s.items()},
    }


class Counting:
    """Counts rows by key, on a source that emits the keys in turn, and discards the result."""

    def __init__(self, spark: SparkSession, directory: Path, keys: int) -> None:
        self._spark, self._keys = spark, keys
        values: dict[Knob, Value] = {_STATE: PARTITIONS, _TRIGGER: TRIGGER}
        self.query = ManagedQuery(spark, NAME, self._build, directory / "checkpoint", values)

    def start(self) -> None:
        self._set_changelog(True)
        self.query.start(_deadline())
        self._wait(lambda: self._rows_of_state() >= self._keys, "not every key has been seen")

    def restart_s(self, *, changelog: bool) -> float:
        """Seconds from the last commit before a plain restart to the first one after it."""
        self._set_changelog(changelog)
        self.query.restart({}, _deadline())
        self._run_on(REPLAYED if changelog else 2)
        self.query.restart({}, _deadline())
        return self._gap()

    def rescale_s(self, verify: bool) -> dict[str, float]:
        """Like `restart_s` for a change of partitions, with changes to replay, and with the seconds of each phase."""
        self._run_on(REPLAYED)
        self.query.verifies = verify
        there = self.query.checkpoint.state_partitions()
        self.query.restart({_STATE: OTHER if there == PARTITIONS else PARTITIONS}, _deadline())
        phases = pause_times.past_pauses(self.query.checkpoint)[-1].phases_s
        # Between the two commits are that of the repartitioning and, if there was one, that of the open batch.
        return {"pause": self._gap(1 + ("open batch" in phases)), **phases}

    def _build(self, values: Mapping[Knob, Value]) -> Any:
        rows = self._spark.readStream.format("rate-micro-batch").option("rowsPerBatch", min(self._keys, MOST_ROWS))
        keys = rows.option("numPartitions", 2).load().selectExpr(f"value % {self._keys} AS key")
        return keys.groupBy("key").count().writeStream.outputMode("update").format("noop")

    def _gap(self, between: int = 0) -> float:
        """Seconds from the last commit of the run before this one to its first, with this many commits between them."""
        self._run_on(1)
        assert self.query.query is not None
        first = min(int(progress["batchId"]) for progress in self.query.query.recentProgress)
        after, before = (
            local_path(self.query.checkpoint.path("commits", batch)).stat().st_mtime
            for batch in (first, first - 1 - between)
        )
        return after - before

    def _run_on(self, batches: int) -> None:
        count = self.query.batches()
        self._wait(lambda: self.query.batches() >= count + batches, "not enough batches have ended")

    def _rows_of_state(self) -> int:
        progress: Any = self.query.query.lastProgress if self.query.query else None
        return sum(int(operator["numRowsTotal"]) for operator in progress["stateOperators"]) if progress else 0

    def _set_changelog(self, on: bool) -> None:
        self._spark.conf.set(_CHANGELOG, str(on).lower())

    def _wait(self, holds: Callable[[], bool], missing: str) -> None:
        if not _deadline().wait_until(lambda: holds() or not self.query.active) or not self.query.active:
            raise HomeostatError(f"{missing}: the query ended, or the time limit passed", where="bench state")


class _Copies(LocalFiles):
    """Copies files, as on a file system without links."""

    def same(self, source: str, target: str) -> Made:
        path = local_path(target)
        path.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(local_path(source), path)
        return "copied"


_WAYS: Mapping[str, LocalFiles] = {"links": LocalFiles(), "copies": _Copies()}


def _savepoint_s(checkpoint: Checkpoint, files: LocalFiles) -> float:
    place = Checkpoint(checkpoint.location, files)
    began = time.monotonic()
    savepoint = savepoints.make(place)
    seconds = time.monotonic() - began
    savepoints.delete(place, savepoint.name)
    return seconds


def _middle(rows: Sequence[Mapping[str, float]]) -> dict[str, float]:
    """The median of each number."""
    names = {name: None for each in rows for name in each}
    return {f"{name.replace(' ', '_')}_s": median(each.get(name, 0.0) for each in rows) for name in names}


def _deadline() -> Deadline:
    return Deadline.after(LIMIT_S)


@contextmanager
def _session() -> Iterator[tuple[SparkSession, Path]]:
    """A local session on two cores: the comparison does not depend on executors."""
    with TemporaryDirectory(prefix="homeostat-bench-") as path:
        directory = Path(path)
        quiet = {"spark.ui.enabled": "false", "spark.driver.memory": "2g"}
        conf = spark_conf(master="local[2]", app_name="bench state", executors=1, directory=directory, extra=quiet)
        spark = build_session(conf)
        try:
            yield spark, directory
        finally:
            spark.stop()
