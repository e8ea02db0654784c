"""A savepoint is complete or does not exist."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from homeostat.checkpoint import restore, savepoints
from homeostat.checkpoint.savepoints import NewerSavepointError, SavepointError
from homeostat.core.errors import ConfigError
from support.small_checkpoint import checkpoint, crashes, put, tree, write_batch

OLD_CHECKPOINTS = Path(__file__).parents[1] / "recorded" / "version-0.1.0" / "checkpoints"


def test_a_savepoint_is_the_last_committed_batch_and_nothing_later(root: Path) -> None:
    expected = tree(root)
    write_batch(root, 2, commit=False)
    put(root / "offsets" / ".3.abc.tmp", "half written")
    savepoint = savepoints.make(checkpoint(root), "good")
    assert (savepoint.batch, savepoint.query_id, savepoint.partitions) == (1, "the-query", 3)
    saved = tree(root.parent / "ckpt.savepoints" / "good" / "checkpoint")
    assert {name: saved[name] for name in expected} == expected
    assert set(saved) - set(expected) == {"sources/0/2"}  # files that were found already are found no more
    assert [each.name for each in savepoints.list_savepoints(checkpoint(root))] == ["good"]


def test_it_is_made_of_links_and_outlives_what_happens_to_the_checkpoint(root: Path) -> None:
    savepoint = savepoints.make(checkpoint(root))
    assert (savepoint.name, savepoint.copied_bytes) == ("batch-1", 0)
    assert savepoint.bytes > 0
    write_batch(root, 1, partitions=9)
    shutil.rmtree(root / "sources")
    savepoints.verify(checkpoint(root), savepoints.read(checkpoint(root), "batch-1"))
    assert savepoints.make(checkpoint(root)).name == "batch-1-2"


def test_without_its_manifest_there_is_no_savepoint(root: Path) -> None:
    savepoints.make(checkpoint(root), "half")
    (root.parent / "ckpt.savepoints" / "half" / "manifest.json").unlink()
    assert savepoints.list_savepoints(checkpoint(root)) == []
    with pytest.raises(ConfigError, match="there is no savepoint 'half'"):
        restore.restore(checkpoint(root), "half")
    savepoints.make(checkpoint(root), "half")
    with pytest.raises(ConfigError, match="a savepoint 'half' already exists"):
        savepoints.make(checkpoint(root), "half")


def test_bad_names_and_an_empty_checkpoint_are_refused(root: Path, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is not a valid savepoint name"):
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
    with pytest.raises(SavepointError, match=r"sources/0/1: a file of the savepoint has changed since it was saved"):
        restore.restore(checkpoint(root), "good", force=True)
    damaged.unlink()
    with pytest.raises(SavepointError, match=r"sources/0/1: a file of the savepoint is missing"):
        restore.restore(checkpoint(root), "good", force=True)
    assert tree(root) == before


def test_a_crash_while_saving_leaves_no_savepoint(root: Path) -> None:
    count = 0
    for _ in crashes(lambda files: savepoints.make(checkpoint(root, files), "good")):
        assert savepoints.list_savepoints(checkpoint(root)) == []
        count += 1
    assert count > 5
    savepoints.verify(checkpoint(root), savepoints.read(checkpoint(root), "good"))


@pytest.mark.parametrize("name", ["../../outside", "a/../../../outside", "/etc/passwd", "a//b", ".", ""])
def test_a_manifest_that_names_files_outside_is_refused(root: Path, name: str) -> None:
    savepoints.make(checkpoint(root), "good")
    manifest = root.parent / "ckpt.savepoints" / "good" / "manifest.json"
    content = json.loads(manifest.read_text())
    content["files"][0]["name"] = name
    manifest.write_text(json.dumps(content))
    before = tree(root.parent)
    with pytest.raises(SavepointError, match="the manifest of this savepoint is damaged"):
        restore.restore(checkpoint(root), "good", force=True)
    assert tree(root.parent) == before


def test_a_manifest_of_another_savepoint_is_refused(root: Path) -> None:
    savepoints.make(checkpoint(root), "good")
    manifest = root.parent / "ckpt.savepoints" / "good" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"good"', '"../../elsewhere"'))
    with pytest.raises(SavepointError, match="the savepoint is called"):
        restore.restore(checkpoint(root), "good", force=True)
    with pytest.raises(ConfigError, match="there is no savepoint"):
        restore.restore(checkpoint(root), "../ckpt.savepoints/good", force=True)


def test_a_savepoint_of_version_0_1_0_is_restored(tmp_path: Path) -> None:
    shutil.copytree(OLD_CHECKPOINTS, tmp_path / "checkpoints")
    root = tmp_path / "checkpoints" / "counting"
    saved = tree(root)
    write_batch(root, 3)
    restore.restore(checkpoint(root), "before-upgrade", force=True)
    assert tree(root) == saved


def test_a_savepoint_of_a_newer_version_is_refused_and_nothing_is_changed(root: Path) -> None:
    savepoints.make(checkpoint(root), "newer")
    manifest = root.parent / "ckpt.savepoints" / "newer" / "manifest.json"
    manifest.write_text(manifest.read_text().replace('"format": 1', '"format": 2'))
    before = tree(root.parent)
    with pytest.raises(NewerSavepointError, match="a newer Homeostat made this savepoint") as refused:
        restore.restore(checkpoint(root), "newer")
    assert (refused.value.exit_code, "\n" in refused.value.line) == (2, False)
    assert tree(root.parent) == before
