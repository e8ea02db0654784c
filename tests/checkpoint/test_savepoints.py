"""Savepoints are whole or not there, and putting one back survives a crash at any step."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from homeostat.checkpoint import restore, savepoints
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.lock import HeldError, held
from homeostat.checkpoint.metadata import Checkpoint
from homeostat.checkpoint.savepoints import SavepointError
from homeostat.core.errors import ConfigError

Content = dict[str, bytes]


def tree(path: Path) -> Content:
    return {str(file.relative_to(path)): file.read_bytes() for file in path.rglob("*") if file.is_file()}


def write_batch(root: Path, batch: int, *, partitions: int = 3, commit: bool = True) -> None:
    """A batch of a query without state, as Spark writes it: files are renamed into place."""
    conf = {"spark.sql.shuffle.partitions": str(partitions)}
    lines = ["v1", json.dumps({"batchWatermarkMs": 0, "conf": conf}), json.dumps({"row": batch})]
    put(root / "offsets" / str(batch), "\n".join(lines))
    put(root / "sources" / "0" / str(batch), f"v1\nfiles of {batch}")
    if commit:
        put(root / "commits" / str(batch), 'v1\n{"nextBatchWatermarkMs":0}')


def put(path: Path, text: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    fresh = path.with_name(f".{path.name}.tmp")
    fresh.write_text(text)
    fresh.rename(path)


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkpoint with the batches 0 and 1."""
    path = tmp_path / "ckpt"
    put(path / "metadata", '{"id": "the-query"}')
    for batch in (0, 1):
        write_batch(path, batch)
    return path


def checkpoint(root: Path, files: LocalFiles | None = None) -> Checkpoint:
    return Checkpoint(str(root), files or LocalFiles())


def test_a_savepoint_is_the_last_committed_batch_and_nothing_later(root: Path) -> None:
    expected = tree(root)
    write_batch(root, 2, commit=False)
    put(root / "offsets" / ".3.abc.tmp", "half written")
    made = savepoints.make(checkpoint(root), "good")
    assert (made.batch, made.query_id, made.partitions) == (1, "the-query", 3)
    saved = tree(root.parent / "ckpt.savepoints" / "good" / "checkpoint")
    assert {name: saved[name] for name in expected} == expected
    assert set(saved) - set(expected) == {"sources/0/2"}  # files that were found already are found no more
    assert [each.name for each in savepoints.listed(checkpoint(root))] == ["good"]


def test_it_is_made_of_links_and_outlives_what_happens_to_the_checkpoint(root: Path) -> None:
    made = savepoints.make(checkpoint(root))
    assert (made.name, made.copied_bytes) == ("batch-1", 0)
    assert made.bytes > 0
    write_batch(root, 1, partitions=9)
    shutil.rmtree(root / "sources")
    savepoints.verify(checkpoint(root), savepoints.read(checkpoint(root), "batch-1"))
    assert savepoints.make(checkpoint(root)).name == "batch-1-2"


def test_without_its_manifest_there_is_no_savepoint(root: Path) -> None:
    savepoints.make(checkpoint(root), "half")
    (root.parent / "ckpt.savepoints" / "half" / "manifest.json").unlink()
    assert savepoints.listed(checkpoint(root)) == []
    with pytest.raises(ConfigError, match="there is no savepoint 'half'"):
        restore.restore(checkpoint(root), "half")
    savepoints.make(checkpoint(root), "half")
    with pytest.raises(ConfigError, match="there is a savepoint 'half' already"):
        savepoints.make(checkpoint(root), "half")


def test_bad_names_and_an_empty_checkpoint_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot name a savepoint"):
        savepoints.make(checkpoint(root), "../elsewhere")
    with pytest.raises(SavepointError, match="no batch has been committed yet"):
        savepoints.make(checkpoint(tmp_path / "fresh"))


def test_a_damaged_savepoint_is_refused_by_the_name_of_the_file(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    before = tree(root)
    saved = root.parent / "ckpt.savepoints" / "good" / "checkpoint"
    damaged = saved / "sources" / "0" / "1"
    damaged.unlink()
    damaged.write_text("v1\nfiles of !")
    with pytest.raises(SavepointError, match=r"sources/0/1: this file of the savepoint does not hold what was saved"):
        restore.restore(checkpoint(root), "good", force=True)
    damaged.unlink()
    with pytest.raises(SavepointError, match=r"sources/0/1: this file of the savepoint is missing"):
        restore.restore(checkpoint(root), "good", force=True)
    assert tree(root) == before


def test_it_is_not_put_back_behind_what_a_sink_may_have_seen(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    expected = tree(root)
    write_batch(root, 2)
    write_batch(root, 3, commit=False)
    with pytest.raises(
        SavepointError, match=r"may have seen batches 2 to 3 \(1 committed, 1 begun\), not held by the savepoint"
    ):
        restore.restore(checkpoint(root), "good")
    kept = restore.restore(checkpoint(root), "good", force=True)
    assert tree(root) == expected
    assert kept.startswith("before-restore-")
    restore.restore(checkpoint(root), kept, force=True)
    assert checkpoint(root).batches().finished == 2


@pytest.mark.parametrize("broken", ["offsets/2", "commits/1", "commits/2"])
def test_it_takes_the_place_of_a_damaged_checkpoint(root: Path, broken: str) -> None:
    savepoints.make(checkpoint(root), "good")
    expected = tree(root)
    write_batch(root, 2)
    put(root / broken, "v1\n{")
    damaged = tree(root)
    with pytest.raises(SavepointError, match="the sink may have seen batch 2"):
        restore.restore(checkpoint(root), "good")
    kept = restore.restore(checkpoint(root), "good", force=True)
    assert tree(root) == expected
    assert tree(Path(kept)) == damaged


def test_batches_of_another_course_under_the_same_numbers_count_as_seen(root: Path) -> None:
    """After a way back the query did another batch 2, which the later savepoint does not hold."""
    savepoints.make(checkpoint(root), "early")
    for batch in (2, 3, 4):
        write_batch(root, batch)
    savepoints.make(checkpoint(root), "late")
    restore.restore(checkpoint(root), "early", force=True)
    write_batch(root, 2)
    offsets = root / "offsets" / "2"
    put(offsets, offsets.read_text().replace('{"row": 2}', '{"row": 17}'))
    with pytest.raises(SavepointError, match=r"may have seen batch 2 \(1 committed\), not held by the savepoint"):
        restore.restore(checkpoint(root), "late")


def test_a_repartitioning_is_nothing_that_a_sink_sees(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    expected = tree(root)
    write_batch(root, 2, partitions=5)
    restore.restore(checkpoint(root), "good")
    assert tree(root) == expected


class CrashError(Exception):
    """The machine goes down."""


class Mortal(LocalFiles):
    """Files that change so many times, and then no more."""

    def __init__(self, changes: int) -> None:
        self._left = changes

    def _change(self) -> None:
        if self._left == 0:
            raise CrashError
        self._left -= 1

    def write(self, path: str, data: bytes) -> None:
        self._change()
        super().write(path, data)

    def same(self, source: str, target: str) -> Any:
        self._change()
        return super().same(source, target)

    def rename(self, source: str, target: str) -> None:
        self._change()
        super().rename(source, target)

    def delete(self, path: str) -> None:
        self._change()
        super().delete(path)


def crashes(do: Callable[[LocalFiles], object]) -> Iterator[None]:
    """After every number of changes that is not yet enough."""
    for changes in range(1000):
        try:
            do(Mortal(changes))
            return
        except CrashError:
            yield
    raise AssertionError("it never comes to an end")


def test_a_crash_while_saving_leaves_no_savepoint(root: Path) -> None:
    count = 0
    for _ in crashes(lambda files: savepoints.make(checkpoint(root, files), "good")):
        assert savepoints.listed(checkpoint(root)) == []
        count += 1
    assert count > 5
    savepoints.verify(checkpoint(root), savepoints.read(checkpoint(root), "good"))


def test_a_crash_while_putting_back_leaves_the_old_or_the_new_but_nothing_between(root: Path, tmp_path: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    new = tree(root)
    write_batch(root, 2)
    old = tree(root)
    seen = []
    pristine = tmp_path / "pristine"
    shutil.copytree(tmp_path, pristine, ignore=shutil.ignore_patterns("pristine"))

    def again() -> None:
        for path in tmp_path.iterdir():
            if path != pristine:
                shutil.rmtree(path) if path.is_dir() else os.unlink(path)
        shutil.copytree(pristine, tmp_path, dirs_exist_ok=True)

    for _ in crashes(lambda files: restore.restore(checkpoint(root, files), "good", force=True)):
        restore.finish(checkpoint(root))
        assert tree(root) in (old, new)
        assert not [path for path in tmp_path.iterdir() if path.name not in ("ckpt", "ckpt.savepoints", "pristine")]
        seen.append(tree(root) == new)
        again()
    assert tree(root) == new
    assert seen == sorted(seen)  # from some step on it goes forward
    assert {*seen} == {False, True}


def told_of_a_repartitioning(root: Path, tmp_path: Path) -> Path:
    """A checkpoint whose batch 2 is one, after the savepoint "good"; the entry of it in the sink's log."""
    savepoints.make(checkpoint(root), "good")
    write_batch(root, 2, partitions=5)
    put(tmp_path / "ckpt.told-sinks.json", json.dumps({"2": str(tmp_path / "out")}))
    entry = tmp_path / "out" / "_spark_metadata" / "2"
    put(entry, "v1")
    return entry


def test_a_sink_is_told_of_the_way_back_whenever_it_crashes(root: Path, tmp_path: Path) -> None:
    """As long as the checkpoint holds the repartitioning the sink's log must know it, and no longer."""
    entry = told_of_a_repartitioning(root, tmp_path)
    for _ in crashes(lambda files: restore.restore(checkpoint(root, files), "good")):
        restore.finish(checkpoint(root))
        assert entry.exists() == (checkpoint(root).batches().begun == 2)
        if not entry.exists():
            return
    raise AssertionError("it was never put back")


def test_a_sink_is_told_again_of_a_repartitioning_that_is_put_back(root: Path, tmp_path: Path) -> None:
    entry = told_of_a_repartitioning(root, tmp_path)
    repartitioned = restore.restore(checkpoint(root), "good")
    assert not entry.exists()
    put(entry.with_name(".2.crc"), "of another")
    restore.restore(checkpoint(root), repartitioned)
    assert checkpoint(root).batches().begun == 2
    assert entry.read_text() == "v1"
    restore.restore(checkpoint(root), "good")
    assert not entry.exists()
    assert not entry.with_name(".2.crc").exists()


def test_what_a_sink_holds_of_a_later_batch_is_never_taken_for_what_it_was_told(root: Path, tmp_path: Path) -> None:
    entry = told_of_a_repartitioning(root, tmp_path)
    repartitioned = restore.restore(checkpoint(root), "good")
    write_batch(root, 2)
    put(entry, "v1\n{files}")
    for name in ("good", repartitioned, "good"):
        restore.restore(checkpoint(root), name, force=True)
        assert entry.read_text() == "v1\n{files}"


def test_two_do_not_work_on_a_checkpoint_at_once(root: Path) -> None:
    with (
        held(str(root)),
        pytest.raises(HeldError, match=f"process {os.getpid()} works on this checkpoint"),
        held(str(root)),
    ):
        pass
    with held(str(root)):
        pass
