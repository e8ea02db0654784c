"""The state as tables: every kind of operator, at any batch kept, and as of one batch while the query goes on."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.checkpoint import state_reader
from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
from homeostat.core.errors import ConfigError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]

WORDS = [f"w{number:02d}" for number in range(12)]

ALL = 1000


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


def by_word(rows: state_reader.Rows, column: str = "value") -> dict[str, Any]:
    return {row["key"]["word"] if "word" in row["key"] else str(row["key"]): row[column] for row in rows.rows}


def total(batch: int) -> int:
    """File n has n + 1 of each word, but the first word is in the first file only."""
    return sum(number + 1 for number in range(batch + 1))


@pytest.mark.parametrize("kind", ["counts", "counts-hdfs", "counts-ids"])
@pytest.mark.parametrize("batch", [0, 2])
def test_sums_at_any_batch(kind: str, batch: int, spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    rows = state_reader.show(spark, opened(checkpoint_of(kind)), None, batch, ALL)
    assert rows.batch == batch
    assert not rows.more
    sums = {word: next(iter(value.values())) for word, value in by_word(rows).items()}
    assert sums == {word: total(batch) if word != "w00" else 1 for word in WORDS}


def test_the_description_of_a_checkpoint(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    description = state_reader.describe(spark, opened(checkpoint_of("counts")))
    (operator,) = description.operators
    (table,) = operator.tables
    assert (description.backend, description.codec, description.batch, description.kept) == (
        "RocksDB",
        "lz4",
        3,
        (0, 1, 2, 3),
    )
    assert (operator.name, operator.partitions) == ("stateStoreSave", 3)
    assert 0 < operator.bytes == description.state_bytes
    assert (table.view, table.rows, table.key) == ("state", len(WORDS), "struct<word:string>")
    assert sum(table.rows_by_partition.values()) == len(WORDS)
    assert "bigint" in table.value


@pytest.mark.parametrize(
    ("kind", "rows"),
    [
        ("unique", {"state": 12}),
        ("sessions", {"state": 12}),
        ("pairs", {"left_side": 23, "right_side": 23}),
        ("processor", {"total": 12, "amounts": 23, "seen": 23, "timers": 23}),
    ],
)
def test_every_kind_of_operator_is_read(
    kind: str, rows: dict[str, int], spark: SparkSession, checkpoint_of: CheckpointOf
) -> None:
    description = state_reader.describe(spark, opened(checkpoint_of(kind)))
    assert {table.view: table.rows for operator in description.operators for table in operator.tables} == rows


def test_variables_of_a_processor(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    checkpoint = opened(checkpoint_of("processor"))
    sums = state_reader.show(spark, checkpoint, "total", None, ALL)
    assert {row["value"]["amount"] for row in sums.rows} == {1, total(1)}
    query = "SELECT key, sort_array(collect_list(list_element.amount)) AS all FROM amounts GROUP BY key ORDER BY key"
    kept = state_reader.query(spark, checkpoint, query, None, ALL)
    assert [row["all"] for row in kept.rows] == [[1]] + [[1, 2]] * 11


def test_sql_over_the_state(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    checkpoint = opened(checkpoint_of("counts"))
    answer = state_reader.query(spark, checkpoint, "SELECT key.word FROM state ORDER BY 1 DESC", 0, 3)
    assert [row["word"] for row in answer.rows] == ["w11", "w10", "w09"]
    assert answer.more
    with pytest.raises(ConfigError, match=r"colour.*use these tables: state"):
        state_reader.query(spark, checkpoint, "SELECT colour FROM state", None, 1)
    with pytest.raises(ConfigError, match=r"no longer has batch 9.*0 to 3"):
        state_reader.query(spark, checkpoint, "SELECT 1", 9, 1)


def test_a_path_that_spark_cannot_read_is_refused(
    spark: SparkSession, checkpoint_of: CheckpointOf, tmp_path: Path
) -> None:
    """Spark's reader escapes the path and never turns it back; a link is a way round."""
    odd = checkpoint_of("counts").rename(tmp_path / "my counts")
    with pytest.raises(
        ConfigError, match=r"a path that contains ' '.*make a symbolic link to the checkpoint under another name"
    ):
        state_reader.show(spark, opened(odd), None, None, 1)
    link = tmp_path / "link"
    link.symlink_to(odd)
    assert state_reader.show(spark, opened(link), None, None, 1).batch == 3


def test_a_table_must_be_named_if_there_are_several(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    checkpoint = opened(checkpoint_of("pairs"))
    with pytest.raises(ConfigError, match="choose one with --table: left_side, right_side"):
        state_reader.show(spark, checkpoint, None, None, 1)
    with pytest.raises(ConfigError, match="the state has no table 'middle'"):
        state_reader.show(spark, checkpoint, "middle", None, 1)
    joined = "SELECT count(*) AS n FROM left_side l JOIN right_side r ON l.key = r.key"
    assert state_reader.query(spark, checkpoint, joined, None, 1).rows == ({"n": 1 + 11 * 4},)
    values = [row["value"] for row in state_reader.show(spark, checkpoint, "left_side", None, ALL).rows]
    assert sorted(value["l_amount"] for value in values) == [1] * 12 + [2] * 11


def test_a_batch_that_is_removed_while_it_is_read(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    """The query goes on: once the reader has chosen batch 2, batch 3 is committed and the others are forgotten."""
    path = checkpoint_of("counts")
    commit, kept = path / "commits" / "3", path.parent / "commit-3"
    commit.rename(kept)
    checkpoint = opened(path)
    batches: list[int] = []

    def read(batch: int) -> state_reader.Rows:
        batches.append(batch)
        if batch == 2:
            kept.rename(commit)
            for name in (f"{log}/{old}" for log in ("commits", "offsets") for old in range(3)):
                (path / name).unlink()
        frame = state_reader.table(spark, checkpoint, state_reader.tables_at(checkpoint, batch)[0], batch)
        return state_reader.collect_rows(frame, batch, ALL)

    batch, rows = state_reader.at_one_batch(checkpoint, None, read)
    assert batches == [2, 3]
    assert batch == rows.batch == 3
    assert len(rows.rows) == len(WORDS)


def test_a_batch_that_was_asked_for_is_not_replaced_by_another(
    spark: SparkSession, checkpoint_of: CheckpointOf
) -> None:
    path = checkpoint_of("counts")

    def read(batch: int) -> state_reader.Rows:
        (path / "offsets" / "0").unlink()
        (path / "commits" / "0").unlink()
        return state_reader.show(spark, opened(path), None, batch, ALL)

    with pytest.raises(ConfigError, match="no longer has batch 0"):
        state_reader.at_one_batch(opened(path), 0, read)


def test_answers_are_of_one_batch_while_the_query_runs(spark: SparkSession, tmp_path: Path) -> None:
    """Every batch adds 4 to each of 10 keys: an answer that mixed two batches would have unequal keys."""
    session = spark.newSession()
    session.conf.set("spark.sql.shuffle.partitions", 2)
    session.conf.set("spark.sql.streaming.minBatchesToRetain", 6)
    rows = session.readStream.format("rate-micro-batch").option("rowsPerBatch", 40).load()
    counts = rows.groupBy((rows.value % 10).alias("number")).count()
    writer = counts.writeStream.format("noop").outputMode("update").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(processingTime="500 milliseconds").start()
    try:
        while query.lastProgress is None:
            assert query.isActive, query.exception()
            query.awaitTermination(1)
        answers: list[state_reader.Rows] = []
        while len({answer.batch for answer in answers}) < 3:
            sql = "SELECT min(value.count) AS low, max(value.count) AS high, count(*) AS keys FROM state"
            answers.append(state_reader.query(spark, opened(tmp_path / "c"), sql, None, 1))
    finally:
        query.stop()
    for answer in answers:
        each = 4 * (answer.batch + 1)
        assert answer.rows == ({"low": each, "high": each, "keys": 10},)
