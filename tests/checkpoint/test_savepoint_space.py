"""The space of savepoints is what deleting them would free."""

from __future__ import annotations

import shutil
from pathlib import Path

from homeostat.checkpoint import savepoints
from homeostat.checkpoint.savepoint_space import savepoint_space
from homeostat.core.observation import SavepointSample
from support.small_checkpoint import checkpoint


def sample(location: Path | str) -> SavepointSample:
    space = savepoint_space(str(location))
    assert space is not None
    return space


def manifests(root: Path) -> int:
    return sum(file.stat().st_size for file in root.parent.glob("ckpt.savepoints/*/manifest.json"))


def test_a_link_takes_no_space_until_the_checkpoint_lets_go_of_the_file(root: Path) -> None:
    assert (sample(root).count, sample(root).held_bytes) == (0, 0)
    first = savepoints.make(checkpoint(root), "first")
    savepoints.make(checkpoint(root), "second")
    assert (sample(root).count, sample(root).held_bytes) == (2, manifests(root))
    shutil.rmtree(root)
    assert sample(f"file://{root}").held_bytes == first.bytes + manifests(root)


def test_a_savepoint_that_is_not_finished_takes_space_but_is_none(root: Path) -> None:
    saved = savepoints.make(checkpoint(root), "half")
    (root.parent / "ckpt.savepoints" / "half" / "manifest.json").unlink()
    shutil.rmtree(root)
    assert (sample(root).count, sample(root).held_bytes) == (0, saved.bytes)


def test_elsewhere_than_on_a_local_disk_it_is_unknown() -> None:
    assert savepoint_space("hdfs://name/ckpt") is None
