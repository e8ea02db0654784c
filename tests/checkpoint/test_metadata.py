"""What a checkpoint tells of itself."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from homeostat.checkpoint.damage import find_damage
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.metadata import CODEC, Batches, Checkpoint, Variable, open_checkpoint
from homeostat.checkpoint.rescale import refusal
from homeostat.checkpoint.state_reader import outline
from homeostat.core.errors import ConfigError
from support.small_checkpoint import checkpoint, put

CheckpointOf = Callable[[str], Path]

PARTITIONS = 3


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


def test_batches_settings_and_partitions(checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of("counts")
    checkpoint = opened(path)
    assert checkpoint.committed_batches() == checkpoint.begun_batches() == [0, 1, 2, 3]
    assert checkpoint.batches() == Batches(3, 3)
    assert not checkpoint.batches().one_is_open
    assert checkpoint.state_partitions() == checkpoint.state_partitions(0) == PARTITIONS
    assert checkpoint.settings()[CODEC] == "lz4"
    assert checkpoint.written_by() == "4.3 or later"
    assert checkpoint.query_id()
    (path / "commits" / "3").unlink()
    assert checkpoint.batches() == Batches(3, 2)
    assert checkpoint.batches().one_is_open
    assert checkpoint.open_repartition() is None


def test_a_repartitioning_that_was_interrupted_shows(checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of("counts")
    latest = (path / "offsets" / "3").read_text()
    (path / "offsets" / "4").write_text(latest.replace('shuffle.partitions":"3"', 'shuffle.partitions":"5"'))
    assert opened(path).open_repartition() == 5


def test_what_has_no_key_has_one_partition(checkpoint_of: CheckpointOf) -> None:
    """Spark notes the number of the others with it, and makes no more than one."""
    path = checkpoint_of("counts")
    schema = path / "state/0/0/_metadata/schema"
    field = b'{"name":"word","type":"string","nullable":true,"metadata":{}}'
    assert field in schema.read_bytes()
    schema.write_bytes(schema.read_bytes().replace(field, b""))
    schema.with_name(".schema.crc").unlink()
    for partition in range(1, PARTITIONS):
        shutil.rmtree(path / f"state/0/{partition}")
    checkpoint = opened(path)
    assert checkpoint.operator(0).partitions == 1
    assert find_damage(checkpoint) == []
    assert "aggregates without a key" in refusal(checkpoint, "4.3.0")


def test_the_partitions_are_those_of_the_batch_not_those_it_began_with(checkpoint_of: CheckpointOf) -> None:
    path = checkpoint_of("counts")
    noted = path / "state/0/_metadata/metadata"
    noted.write_text(noted.read_text().replace('"numPartitions":3', '"numPartitions":1'))
    assert opened(path).operator(0).partitions == PARTITIONS


def test_variables_of_a_processor(checkpoint_of: CheckpointOf) -> None:
    operator = opened(checkpoint_of("processor")).operator(0)
    assert {Variable("total", "ValueState"), Variable("amounts", "ListState"), Variable("seen", "MapState")} <= {
        *operator.variables
    }
    assert operator.time_mode == "EventTime"


def test_what_is_no_checkpoint_is_refused(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such directory"):
        open_checkpoint(str(tmp_path / "nowhere"))
    with pytest.raises(ConfigError, match="this directory is not a checkpoint"):
        open_checkpoint(str(tmp_path))


def test_a_fresh_checkpoint_has_nothing(tmp_path: Path) -> None:
    checkpoint = Checkpoint(str(tmp_path), LocalFiles())
    assert checkpoint.batches() == Batches(-1, -1)
    assert checkpoint.state_partitions() is None
    assert not checkpoint.has_state()
    assert checkpoint.query_id() is None


def test_state_that_spark_wrote_before_version_4_is_not_called_damaged(root: Path) -> None:
    for partition in range(3):
        for version in (1, 2):
            put(root / "state" / "0" / str(partition) / f"{version}.delta", "")
    (root / "state" / "0" / "0" / "_metadata").mkdir()
    damage = [each.path for each in find_damage(checkpoint(root))]
    assert [path for path in damage if "_metadata" in path] == []
    put(root / "state" / "0" / "_metadata" / "metadata", "")
    assert [each.path for each in find_damage(checkpoint(root)) if "_metadata" in each.path] == [
        "state/0/_metadata/metadata"
    ]


def test_the_outline_of_such_a_checkpoint_says_why_it_shows_no_tables(
    root: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    put(root / "state" / "0" / "0" / "1.delta", "four")
    monkeypatch.setattr("homeostat.checkpoint.state_reader.find_damage", lambda checkpoint, batch: [])
    description = outline(checkpoint(root))
    assert "before version 3.1" in description.note
    assert not description.readable
    assert [(each.name, each.partitions, each.bytes) for each in description.operators] == [("unknown", 3, 4)]
