"""Which files make up a version of a state store."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from homeostat.checkpoint.metadata import Checkpoint, open_checkpoint
from homeostat.checkpoint.store_files import StoreFile, chain

CheckpointOf = Callable[[str], Path]


def opened(path: Path) -> Checkpoint:
    return open_checkpoint(str(path))


def test_the_files_of_a_store_by_version(checkpoint_of: CheckpointOf) -> None:
    rocksdb = opened(checkpoint_of("counts")).store_files(0, 1)
    assert [file.name for file in rocksdb] == ["1.zip", "2.zip", "3.changelog", "4.changelog"]
    hdfs = opened(checkpoint_of("counts-hdfs")).store_files(0, 1)
    assert [file.version for file in hdfs if file.kind == "changes"] == [1, 2, 3, 4]
    with_ids = opened(checkpoint_of("counts-ids"))
    ids = with_ids.unique_ids(2)[0][1]
    assert ids == [next(file.unique_id for file in with_ids.store_files(0, 1) if file.version == 3)]


def test_what_a_version_is_made_of() -> None:
    def file(name: str, version: int, kind: str, id: str = "") -> StoreFile:
        assert kind in ("snapshot", "changes")
        return StoreFile(name, version, "snapshot" if kind == "snapshot" else "changes", 1, id)

    files = [file("2.zip", 2, "snapshot"), *(file(f"{n}.changelog", n, "changes") for n in (1, 2, 3, 5))]
    assert [each.name for each in chain(files, 3).files] == ["2.zip", "3.changelog"]
    assert chain(files, 5).missing == (4,)
    assert [each.name for each in chain(files, 1).files] == ["1.changelog"]
    two = [file("1_a.changelog", 1, "changes", "a"), file("1_b.changelog", 1, "changes", "b")]
    assert [each.name for each in chain(two, 1, {1: "a"}).files] == ["1_a.changelog"]
