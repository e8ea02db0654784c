"""A checkpoint that is broken is told so by name, whatever is wrong with it, and nothing is written."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint.damage import DamagedError, find_damage, require_sound
from homeostat.checkpoint.files import HadoopFiles
from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


CheckpointOf = Callable[[str], Path]

Break = Callable[[Path], object]


def cut(path: Path) -> None:
    path.write_bytes(path.read_bytes()[:-5])
    forget_sums(path)


def empty(path: Path) -> None:
    path.write_bytes(b"")
    forget_sums(path)


def flip(path: Path) -> None:
    """One bit in the middle; Hadoop's checksums stay as they are."""
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def newer(path: Path) -> None:
    path.write_text("v9\n" + path.read_text().partition("\n")[2])
    forget_sums(path)


def torn(path: Path) -> None:
    path.write_text('v1\n{"batch')
    forget_sums(path)


def forget_sums(path: Path) -> None:
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)


def foreign(path: Path) -> None:
    path.write_text("notes")


def content(root: Path) -> dict[str, bytes]:
    return {str(path.relative_to(root)): path.read_bytes() for path in sorted(root.rglob("*")) if path.is_file()}


@pytest.mark.parametrize("kind", ["counts", "counts-hdfs", "counts-ids", "unique", "sessions", "pairs", "processor"])
def test_a_sound_checkpoint_has_no_damage(kind: str, checkpoint_of: CheckpointOf) -> None:
    checkpoint = open_checkpoint(str(checkpoint_of(kind)))
    assert find_damage(checkpoint) == []
    assert find_damage(checkpoint, 1) == []


CASES: dict[str, tuple[str, str, Break, str]] = {
    "missing delta": ("counts-hdfs", "state/0/1/2.delta", Path.unlink, "is missing"),
    "missing changelog": ("counts", "state/0/1/3.changelog", Path.unlink, "is missing"),
    "truncated delta": ("counts-hdfs", "state/0/2/4.delta", cut, "is cut off"),
    "empty delta": ("counts-hdfs", "state/0/2/4.delta", empty, "is empty"),
    "truncated changelog": ("counts", "state/0/2/4.changelog", cut, "is cut off"),
    "truncated snapshot": ("counts", "state/0/0/2.zip", cut, "is not a complete zip file"),
    "changed snapshot": ("counts", "state/0/0/2.zip", flip, "does not match its checksum"),
    "changed delta": ("counts-hdfs", "state/0/0/3.delta", flip, "does not match its checksum"),
    "foreign file in a store": ("counts", "state/0/1/notes.txt", foreign, "does not belong to a checkpoint"),
    "foreign file among partitions": ("counts", "state/0/notes.txt", foreign, "does not belong to a checkpoint"),
    "foreign file in a log": ("counts", "offsets/notes.txt", foreign, "does not belong to a checkpoint"),
    "offsets of a later version": ("counts", "offsets/3", newer, "has version 9, but Spark reads only versions 1 to 2"),
    "commit of a later version": ("counts", "commits/3", newer, "has version 9, but Spark reads only versions 1 to 3"),
    "operator of a later version": ("counts", "state/0/_metadata/metadata", newer, "has version 9"),
    "truncated offsets": ("counts", "offsets/2", torn, "is cut off or overwritten"),
    "empty commit": ("counts", "commits/1", empty, "is empty"),
    "truncated commit": ("counts", "commits/1", torn, "is cut off or overwritten"),
    "last commit truncated": ("counts", "commits/3", torn, "is cut off or overwritten"),
    "changed commit": ("counts-ids", "commits/1", flip, "does not match its checksum"),
    "truncated offset of a source": ("counts", "offsets/2", cut, "an offset is not JSON"),
    "missing entry of a file source": ("counts", "sources/0/1", Path.unlink, "is missing"),
    "empty entry of a file source": ("counts", "sources/0/3", empty, "is empty"),
    "changed entry of a file source": ("counts", "sources/0/2", flip, "does not match its checksum"),
    "changed schema": ("counts", "state/0/0/_metadata/schema", flip, "does not match its checksum"),
    "missing commit": ("counts", "commits/1", Path.unlink, "is missing"),
    "missing offsets": ("counts", "offsets/3", Path.unlink, "is missing"),
    "missing metadata": ("counts", "metadata", Path.unlink, "is missing"),
    "unreadable metadata": ("counts", "metadata", torn, "is not JSON"),
    "missing partition": ("counts", "state/0/2", shutil.rmtree, "contains no state"),
    "missing side of a join": ("pairs", "state/0/1/left-keyToNumValues/4.changelog", Path.unlink, "behind"),
}


@pytest.mark.parametrize("case", CASES)
def test_damage_is_named(case: str, checkpoint_of: CheckpointOf) -> None:
    kind, path, damage, words = CASES[case]
    root = checkpoint_of(kind)
    damage(root / path)
    before = content(root)
    damages = find_damage(open_checkpoint(str(root)))
    expected = path.rpartition("/")[0] if words == "behind" else path
    assert [each for each in damages if each.path.startswith(expected) and words in each.what], damages
    assert all(each.follows and each.fix for each in damages)
    with pytest.raises(DamagedError, match=damages[0].path):
        require_sound(open_checkpoint(str(root)))
    assert content(root) == before


def test_a_file_that_a_snapshot_shares_is_missing_or_cut(checkpoint_of: CheckpointOf) -> None:
    root = checkpoint_of("counts")
    table = min((root / "state/0/0/SSTs").glob("*.sst"))
    whole = table.read_bytes()
    table.write_bytes(whole[:-1])
    (damage,) = find_damage(open_checkpoint(str(root)), 1)
    assert damage.what == f"has {len(whole) - 1} bytes instead of {len(whole)}, but 2.zip needs it"
    table.unlink()
    (damage,) = find_damage(open_checkpoint(str(root)), 1)
    assert (damage.path, damage.what) == (f"state/0/0/SSTs/{table.name}", "is missing, but 2.zip needs it")


def test_a_processor_that_was_moved_has_lost_its_schema(checkpoint_of: CheckpointOf) -> None:
    """Spark writes down where the schema lies, and does not look beside the state."""
    root = checkpoint_of("processor")
    for noted in (root / "state/0/_metadata/v2").glob("[0-9]*"):
        noted.write_text(noted.read_text().replace("/_stateSchema/", "/_elsewhere/"))
        forget_sums(noted)
    (damage,) = find_damage(open_checkpoint(str(root)))
    assert damage.path == "state/0/_metadata"
    assert "refers to the schema file" in damage.what
    assert "if the checkpoint was moved, move it back" in damage.fix


def test_hadoop_sees_the_same(spark: SparkSession, checkpoint_of: CheckpointOf) -> None:
    root = checkpoint_of("counts")
    checkpoint = Checkpoint(root.as_uri(), HadoopFiles(spark))
    assert find_damage(checkpoint) == []
    flip(root / "state/0/1/4.changelog")
    (root / "commits" / "1").unlink()
    what_by_path = {each.path: each.what for each in find_damage(checkpoint)}
    assert what_by_path.pop("commits/1") == "is missing"
    assert what_by_path.popitem()[1].startswith("cannot be read: ")


def test_logs_that_lost_their_end_leave_the_state_ahead(checkpoint_of: CheckpointOf) -> None:
    root = checkpoint_of("counts")
    for log in ("offsets", "commits"):
        for batch in (2, 3):
            (root / log / str(batch)).unlink()
    damages = find_damage(open_checkpoint(str(root)))
    assert {each.path for each in damages} == {f"state/0/{partition}/4.changelog" for partition in range(3)}
    assert {each.what for each in damages} == {"is ahead: no batch after 1 was started"}


def test_an_open_batch_is_no_damage(checkpoint_of: CheckpointOf) -> None:
    """The state of a batch is written before its commit."""
    root = checkpoint_of("counts")
    (root / "commits" / "3").unlink()
    assert find_damage(open_checkpoint(str(root))) == []


def test_what_an_old_batch_needs_does_not_concern_the_latest(checkpoint_of: CheckpointOf) -> None:
    root = checkpoint_of("counts")
    (root / "state/0/1/1.zip").unlink()
    checkpoint = open_checkpoint(str(root))
    assert find_damage(checkpoint) == []
    assert [each.path for each in find_damage(checkpoint, 0)] == ["state/0/1/1.changelog"]


def test_all_damage_is_counted(checkpoint_of: CheckpointOf) -> None:
    root = checkpoint_of("counts-hdfs")
    for partition in range(3):
        (root / f"state/0/{partition}/2.delta").unlink()
    with pytest.raises(DamagedError, match="`homeostat state ls` lists 2 more") as raised:
        require_sound(open_checkpoint(str(root)))
    assert len(raised.value.damage) == 3
    assert raised.value.exit_code == 3
