"""The log of a file sink knows of a repartitioning exactly as long as the checkpoint contains it."""

from __future__ import annotations

import json
from pathlib import Path

from homeostat.checkpoint import restore, savepoints
from support.small_checkpoint import checkpoint, crashes, put, write_batch


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
