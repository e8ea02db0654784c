"""Restoring a savepoint survives a crash at any step, and never goes behind what a sink has received."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from homeostat.checkpoint import restore, savepoints
from homeostat.checkpoint.files import LocalFiles
from homeostat.checkpoint.savepoints import SavepointError
from support.small_checkpoint import checkpoint, crashes, put, tree, write_batch


def test_it_is_not_put_back_behind_what_a_sink_may_have_seen(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    expected = tree(root)
    write_batch(root, 2)
    write_batch(root, 3, commit=False)
    with pytest.raises(
        SavepointError,
        match=r"may have received batches 2 to 3 \(1 committed, 1 started\), which the savepoint",
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
    with pytest.raises(SavepointError, match="the sink may have received batch 2"):
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
    with pytest.raises(SavepointError, match=r"may have received batch 2 \(1 committed\), which the savepoint"):
        restore.restore(checkpoint(root), "late")


def test_a_repartitioning_is_nothing_that_a_sink_sees(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    expected = tree(root)
    write_batch(root, 2, partitions=5)
    restore.restore(checkpoint(root), "good")
    assert tree(root) == expected


def test_a_crash_while_putting_back_leaves_the_old_or_the_new_but_nothing_between(root: Path, tmp_path: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    new = tree(root)
    write_batch(root, 2)
    old = tree(root)
    is_new = []
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
        is_new.append(tree(root) == new)
        again()
    assert tree(root) == new
    assert is_new == sorted(is_new)  # from some step on it goes forward
    assert {*is_new} == {False, True}


def test_through_a_link_the_real_checkpoint_is_restored(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    expected = tree(root)
    write_batch(root, 2)
    link = root.parent / "link"
    link.symlink_to(root)
    restore.restore(checkpoint(link), "good", force=True)
    assert link.is_symlink()
    assert tree(root) == tree(link) == expected


class CopyingFiles(LocalFiles):
    """Renames a directory as an object store does: file by file."""

    def renames_at_once(self, path: str) -> bool:
        return False


def test_where_a_rename_takes_many_steps_nothing_is_touched(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    write_batch(root, 2)
    before = tree(root.parent)
    with pytest.raises(SavepointError, match="renames a directory file by file"):
        restore.restore(checkpoint(root, CopyingFiles()), "good", force=True)
    assert tree(root.parent) == before
