"""Checkpoints from before Spark 4.0: described, read, or refused for their true reason."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from homeostat.checkpoint import state_reader
from homeostat.checkpoint.completed import GivenSchema, completed
from homeostat.checkpoint.damage import find_damage
from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
from homeostat.checkpoint.old_layout import lack_of
from homeostat.checkpoint.rescale import refusal
from homeostat.core.errors import ConfigError
from support.checkpoints import PARTITIONS, WORDS
from support.old_checkpoints import as_spark_2_1, as_spark_2_4, as_spark_3_5

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CheckpointOf = Callable[[str], Path]
Homeostat = Callable[..., Any]
ALL = 1000


@pytest.fixture
def state(homeostat: Homeostat) -> Homeostat:
    return partial(homeostat, "state")


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


def rows_of(spark: SparkSession, path: Path, view: str | None = None) -> list[Any]:
    return sorted(map(str, state_reader.show(spark, opened(path), view, None, ALL).rows))


@pytest.mark.parametrize(
    ("kind", "view", "name"),
    [
        ("counts", None, "stateStoreSave"),
        ("unique", None, "dedupe"),
        ("pairs", "left_side", "symmetricHashJoin"),
    ],
)
def test_state_without_metadata_of_its_operators_is_read_all_the_same(
    kind: str, view: str | None, name: str, spark: SparkSession, checkpoint_of: CheckpointOf
) -> None:
    path = checkpoint_of(kind)
    before = rows_of(spark, path, view)
    operator = opened(path).operator(0)
    as_spark_3_5(path)
    old = opened(path)
    assert old.written_by() == "3.2.2 to 3.5"
    assert find_damage(old) == []
    assert before
    assert rows_of(spark, path, view) == before
    inferred = old.operator(0)
    assert (inferred.name, inferred.partitions, inferred.inferred) == (name, PARTITIONS, True)
    assert sorted(inferred.stores) == sorted(operator.stores)


def test_session_windows_in_rocksdb_are_refused_because_their_keys_are_not_known(checkpoint_of: CheckpointOf) -> None:
    """Spark's reader would take them for other keys."""
    old = opened(as_spark_3_5(checkpoint_of("sessions")))
    lack = lack_of(old)
    assert lack is not None
    assert "session windows in RocksDB" in lack.reason
    assert "Spark 4.0" in lack.fix


def test_nothing_old_is_repartitioned(checkpoint_of: CheckpointOf) -> None:
    assert "has no metadata" in refusal(opened(as_spark_3_5(checkpoint_of("counts"))), "4.3.0")


def test_what_spark_2_4_did_not_write_is_asked_for(state: Homeostat, checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of("counts-hdfs")
    expected = state("show", path, "--json").json
    as_spark_2_4(path)
    result = state("ls", path)
    assert result.code == 0, result.err
    assert "written by     Spark 2.4" in result.out
    assert "did not store the schema of the state" in result.out
    refused = state("show", path)
    assert refused.code == 2
    assert "--schema" in refused.err
    schema = "key STRUCT<word: STRING>, value STRUCT<sum: BIGINT>"
    answer = state("show", path, "--schema", schema, "--json").json
    assert sorted(map(str, answer["rows"])) == sorted(map(str, expected["rows"]))
    assert len(answer["rows"]) == WORDS
    total = state("query", path, "SELECT count(*) AS words FROM state", "--schema", schema, "--json").json
    assert total["rows"] == [{"words": WORDS}]
    assert not list((path / "state").rglob("_metadata")), "the checkpoint was changed"


def test_the_wrong_schema_of_a_deduplication_is_not_believed(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    """Before 3.3.1 Spark wrote down whole rows, and kept none."""
    path = as_spark_3_5(checkpoint_of("unique"))
    expected = rows_of(spark, path)
    schema = path / "state/0/0/_metadata/schema"
    key = '{"type":"struct","fields":[{"name":"word","type":"string","nullable":true,"metadata":{}}]}'
    text = len(key).to_bytes(2) + key.encode()
    schema.write_bytes(b"\0\2v2" + 2 * ((1).to_bytes(4) + text))
    schema.with_name(".schema.crc").unlink(missing_ok=True)
    with pytest.raises(ConfigError, match="stored the schema of the rows"):
        state_reader.show(spark, opened(path), None, None, ALL)
    own_schema = GivenSchema("key STRUCT<word: STRING>, value STRUCT<__dummy__: VOID>")
    with completed(opened(path), spark, [own_schema]) as checkpoint:
        assert sorted(map(str, state_reader.show(spark, checkpoint, None, None, ALL).rows)) == expected


@pytest.mark.parametrize(
    ("schema", "words"),
    [
        ("word STRING", "not the schema of a state store"),
        ("key STRUCT<", "not a schema"),
        ("left: key STRUCT<word: STRING>, value STRUCT<n: BIGINT>", "the state has no store state/0/0/left"),
    ],
)
def test_a_schema_that_is_none_is_refused(
    schema: str, words: str, state: Homeostat, checkpoint_of: CheckpointOf
) -> None:
    refused = state("show", as_spark_2_4(checkpoint_of("counts-hdfs")), "--schema", schema)
    assert refused.code == 2
    assert words in refused.err


def test_the_first_layout_of_all_is_described_and_refused(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    old = opened(as_spark_2_1(checkpoint_of("counts-hdfs")))
    described = state_reader.outline(old)
    assert described.written_by == "2.1 or 2.2.0"
    assert described.damage == ()
    assert [(each.name, each.partitions) for each in described.operators] == [("unknown", PARTITIONS)]
    assert "neither a log of commits nor the settings" in described.note
    with pytest.raises(ConfigError, match="neither a log of commits"):
        state_reader.show(spark, old, None, None, ALL)
