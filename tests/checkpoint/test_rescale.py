"""Real states of every kind of operator, brought to other partitions: the same rows, wherever it is interrupted."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.checkpoint import raw_rows, rescale, savepoints, state_reader
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.partition_preview import preview
from homeostat.checkpoint.rescale import RescaleError
from homeostat.checkpoint.state_tables import tables
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]

REPARTITIONED = ("counts", "counts-ids", "unique", "unique-lately", "sessions", "pairs", "processor", "in-pandas")

ONE_ROW_A_KEY = ("counts", "unique", "sessions")

PARTITIONS, MORE, FEWER = 3, 4, 2


def checkpoint(path: Path, files: LocalFiles | None = None) -> Checkpoint:
    return Checkpoint(str(path), files or LocalFiles())


def rows(spark: SparkSession, at: Checkpoint) -> dict[str, list[str]]:
    """Every row of every table as Spark's public reader shows it, without its partition."""
    batch = at.batches().finished
    rows_by_view = {}
    with state_reader.in_the_format_of(spark, at, batch):
        for each in tables(at, batch):
            frame = state_reader.table(spark, at, each, batch).drop("partition_id")
            rows_by_view[each.view] = sorted(str(row.asDict(recursive=True)) for row in frame.collect())
    return rows_by_view


@pytest.mark.parametrize("kind", REPARTITIONED)
def test_the_same_rows_lie_where_they_were_foretold(
    spark: SparkSession, checkpoint_of: CheckpointOf, kind: str
) -> None:
    at = checkpoint(checkpoint_of(kind))
    before, batch = rows(spark, at), at.batches().finished
    keys = raw_rows.keys(spark, at, batch)
    assert sum(int(store_keys.rows.sum()) for store_keys in keys.values()) >= sum(map(len, before.values())) > 0
    digests = raw_rows.digests(spark, at, batch)
    assert all(digest.misplaced == 0 for digest in digests.values())
    done = rescale.rescale(spark, at, MORE)
    assert (done.before, done.partitions, done.batch) == (PARTITIONS, MORE, batch)
    assert set(done.phases_s) == {"savepoint", "repartition", "verify"}
    assert at.batches().finished == at.batches().begun == batch + 1
    assert at.state_partitions() == MORE
    assert rows(spark, at) == before
    if kind in ONE_ROW_A_KEY:
        (spread,) = preview(keys, MORE).operators
        assert spread.rows == rows_by_partition(spark, at)
    assert [each.batch for each in savepoints.list_savepoints(at)] == [batch]


def rows_by_partition(spark: SparkSession, at: Checkpoint) -> tuple[int, ...]:
    """As Spark's public reader tells them, of a state that is one table."""
    batch = at.batches().finished
    (only,) = tables(at, batch)
    counts = state_reader.table(spark, at, only, batch).groupBy("partition_id").count().collect()
    count_by_partition = {row["partition_id"]: row["count"] for row in counts}
    return tuple(count_by_partition.get(partition, 0) for partition in range(at.state_partitions() or 0))


class CrashError(BaseException):
    """The driver is gone: nothing is caught, nothing is put back."""


class Steps:
    """Lets so many steps be told, and dies at the next."""

    def __init__(self, allowed: int) -> None:
        self.left = allowed

    def __call__(self, text: str) -> None:
        if self.left == 0:
            raise CrashError
        self.left -= 1


def test_after_a_crash_at_any_step_it_goes_on(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    at = checkpoint(checkpoint_of("counts"))
    before, batch = rows(spark, at), at.batches().finished
    for allowed in range(3):
        with pytest.raises(CrashError):
            rescale.rescale(spark, at, MORE, tell=Steps(allowed))
        planned = rescale.unfinished_plan(at)
        assert planned is not None
        assert (planned.partitions, planned.batch) == (MORE, batch)
    rescale.rescale(spark, at, MORE)
    assert rescale.unfinished_plan(at) is None
    assert at.batches().finished == batch + 1
    assert rows(spark, at) == before


def test_the_number_of_an_earlier_attempt_is_reached_first(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    at = checkpoint(checkpoint_of("counts"))
    batch = at.batches().finished
    with pytest.raises(CrashError):
        rescale.rescale(spark, at, MORE, tell=Steps(1))
    done = rescale.rescale(spark, at, FEWER)
    assert (done.before, done.partitions, done.batch) == (MORE, FEWER, batch + 1)


def test_a_plan_that_was_overtaken_is_dropped(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    at = checkpoint(checkpoint_of("counts"))
    with pytest.raises(CrashError):
        rescale.rescale(spark, at, MORE, tell=Steps(0))
    assert rescale.half_done(at) == [
        f"a rescale from 3 to {MORE} partitions was interrupted: run `homeostat state rescale` again to finish it"
    ]
    spark._streamingCheckpointManager.repartition(at.location, FEWER)  # whoever else does something before
    assert rescale.finish(spark, at) is None
    assert at.state_partitions() == FEWER
    assert rescale.half_done(at) == []


class Failing:
    """A session whose repartitioning writes something else than it read."""

    def __init__(self, spark: SparkSession, spoil: Callable[[], None]) -> None:
        self._spark, self._spoil = spark, spoil

    def __getattr__(self, name: str) -> Any:
        return self if name == "_streamingCheckpointManager" else getattr(self._spark, name)

    def repartition(self, location: str, count: int) -> None:
        self._spark._streamingCheckpointManager.repartition(location, count)
        self._spoil()


def test_what_fails_is_put_back(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of("counts")
    at = checkpoint(path)
    before, batches = rows(spark, at), at.batches()

    def spoil() -> None:
        """The state of an older batch takes the place of a partition that was just written."""
        version = batches.finished + 2
        (path / "state" / "0" / str(MORE - 1) / f"{version}.zip").unlink()

    with pytest.raises(RescaleError, match=r"the savepoint \S+ was restored"):
        rescale.rescale(Failing(spark, spoil), at, MORE)  # type: ignore[arg-type]
    assert rescale.unfinished_plan(at) is None
    assert at.batches() == batches
    assert at.state_partitions() == PARTITIONS
    assert rows(spark, at) == before
    rescale.rescale(spark, at, MORE)


def test_what_cannot_be_repartitioned_is_said_beforehand(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    hdfs = checkpoint(checkpoint_of("counts-hdfs"))
    with pytest.raises(RescaleError, match="the state store is HDFSBackedStateStoreProvider"):
        rescale.rescale(spark, hdfs, MORE)
    counts = checkpoint_of("counts")
    with pytest.raises(ConfigError, match="the state already has 3 partitions"):
        rescale.rescale(spark, checkpoint(counts), PARTITIONS)
    assert "Spark 4.1.0 cannot repartition state" in rescale.refusal(checkpoint(counts), "4.1.0")
    last = checkpoint(counts).batches().finished
    (counts / "commits" / str(last)).unlink()
    with pytest.raises(RescaleError, match=f"batch {last} is not committed, and only the query itself can finish it"):
        rescale.rescale(spark, checkpoint(counts), MORE)
    assert not list(counts.parent.glob("counts.*"))


def test_what_has_no_key_stays_in_its_one_partition(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    at = checkpoint(checkpoint_of("everything"))
    assert at.operator(0).partitions == 1
    with pytest.raises(RescaleError, match="aggregates without a key, so it always has one partition"):
        rescale.rescale(spark, at, MORE)
    assert at.state_partitions() == PARTITIONS
