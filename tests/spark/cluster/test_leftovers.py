"""What killed processes of Spark left behind is deleted, and nothing else."""

from __future__ import annotations

import os
from pathlib import Path

from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.spark.cluster.leftovers import LOCAL, java_files, remove_leftovers, remove_loaded_libraries


def left_by_a_killed_process(directory: Path) -> list[str]:
    """The names in the folder of temporary files: two that Spark made, and one that it did not."""
    for name in ("blockmgr-1/0c", "spark-2/executor-3/blockmgr-4", "own"):
        (directory / LOCAL / name).mkdir(parents=True)
        (directory / LOCAL / name / "shuffle_0_0_0.data").write_text("rows")
    return names(directory)


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in (directory / LOCAL).iterdir())


def test_only_what_spark_made_is_deleted(tmp_path: Path) -> None:
    remove_leftovers(tmp_path)
    assert left_by_a_killed_process(tmp_path) == ["blockmgr-1", "own", "spark-2"]
    remove_leftovers(tmp_path)
    assert names(tmp_path) == ["own"]
    assert (tmp_path / LOCAL / "own" / "shuffle_0_0_0.data").exists()


def test_what_java_unpacked_for_a_killed_process_is_deleted_at_the_next_start(tmp_path: Path) -> None:
    folder = java_files(tmp_path)
    (folder / "librocksdbjni1.so").write_text("a library")
    (folder / "artifacts-1").mkdir()
    remove_leftovers(tmp_path)
    assert list(folder.iterdir()) == []
    assert java_files(tmp_path) == folder


def test_only_libraries_that_were_loaded_long_ago_are_deleted_while_spark_runs(tmp_path: Path) -> None:
    folder = java_files(tmp_path)
    for name in ("librocksdbjni1.so", "liblz4-java-1.so.lck", "librocksdbjni2.so", "other"):
        (folder / name).write_text("a library")
        if name != "librocksdbjni2.so":
            os.utime(folder / name, (0.0, 0.0))
    remove_loaded_libraries(tmp_path)
    assert sorted(path.name for path in folder.iterdir()) == ["librocksdbjni2.so", "other"]


def test_a_cluster_starts_without_what_an_earlier_one_left(tmp_path: Path) -> None:
    left_by_a_killed_process(tmp_path)
    EmbeddedCluster(tmp_path, workers=1)._new_environment()
    assert names(tmp_path) == ["own"]
