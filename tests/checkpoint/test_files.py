"""Files on this machine, and the same through Hadoop's file systems."""

from __future__ import annotations

import hashlib
import os
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from homeostat.checkpoint.files import Files, HadoopFiles, LocalFiles, files_of
from homeostat.core.errors import ConfigError, HomeostatError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(params=["local", pytest.param("hadoop", marks=pytest.mark.local_spark)])
def files(request: pytest.FixtureRequest) -> Files:
    return LocalFiles() if request.param == "local" else HadoopFiles(request.getfixturevalue("spark"))


def test_what_is_written_is_read_and_listed(files: Files, tmp_path: Path) -> None:
    root = tmp_path.as_uri()
    files.write(f"{root}/a/one.txt", b"first")
    files.write(f"{root}/a/one.txt", b"second")
    files.write(f"{root}/two.txt", bytes(range(256)))
    assert files.read(f"{root}/a/one.txt") == b"second"
    assert files.read(f"{root}/two.txt") == bytes(range(256))
    assert files.tail(f"{root}/two.txt", 2) == b"\xfe\xff"
    assert files.tail(f"{root}/a/one.txt", 100) == b"second"
    visible_entries = [entry for entry in files.entries(root) if not entry.name.startswith(".")]
    assert [(entry.name, entry.directory) for entry in visible_entries] == [("a", True), ("two.txt", False)]
    walked = {entry.name: entry.size for entry in files.walk(root) if not entry.name.rpartition("/")[2].startswith(".")}
    assert walked == {"a/one.txt": 6, "two.txt": 256}
    assert files.checksum(f"{root}/two.txt") == hashlib.sha256(bytes(range(256))).hexdigest()
    assert not list(tmp_path.rglob("*.tmp"))


def test_what_is_missing_is_empty_or_refused(files: Files, tmp_path: Path) -> None:
    nothing = f"{tmp_path.as_uri()}/nothing"
    assert files.entries(nothing) == []
    assert list(files.walk(nothing)) == []
    assert not files.exists(nothing)
    files.delete(nothing)
    with pytest.raises(FileNotFoundError):
        files.read(nothing)


def test_renaming_never_replaces(files: Files, tmp_path: Path) -> None:
    root = tmp_path.as_uri()
    files.write(f"{root}/old/x", b"old")
    files.write(f"{root}/new/x", b"new")
    with pytest.raises(FileExistsError):
        files.rename(f"{root}/old", f"{root}/new")
    files.delete(f"{root}/new")
    files.rename(f"{root}/old", f"{root}/deeper/new")
    assert files.read(f"{root}/deeper/new/x") == b"old"
    assert not files.exists(f"{root}/old")


def test_the_same_content_by_link_or_copy(files: Files, tmp_path: Path) -> None:
    root = tmp_path.as_uri()
    files.write(f"{root}/x", b"kept")
    method = files.same(f"{root}/x", f"{root}/below/y")
    assert files.read(f"{root}/below/y") == b"kept"
    assert method == ("linked" if isinstance(files, LocalFiles) else "copied")
    assert os.path.samefile(tmp_path / "x", tmp_path / "below" / "y") == (method == "linked")
    files.delete(f"{root}/x")
    assert files.read(f"{root}/below/y") == b"kept"


def test_where_links_are_impossible_it_copies(tmp_path: Path) -> None:
    elsewhere = Path("/dev/shm")
    if not elsewhere.is_dir() or elsewhere.stat().st_dev == tmp_path.stat().st_dev:
        pytest.skip("there is no second file system to copy to")
    target = elsewhere / f"homeostat-{os.getpid()}"
    (tmp_path / "x").write_bytes(b"kept")
    try:
        assert LocalFiles().same(str(tmp_path / "x"), str(target / "x")) == "copied"
        assert (target / "x").read_bytes() == b"kept"
    finally:
        shutil.rmtree(target, ignore_errors=True)


def test_hadoop_reads_what_was_overwritten_here(spark: SparkSession, tmp_path: Path) -> None:
    """Hadoop keeps checksums beside local files; those of the old content must not outlive it."""
    place = f"{tmp_path.as_uri()}/x"
    HadoopFiles(spark).write(place, b"by hadoop")
    LocalFiles().write(place, b"by this machine")
    assert HadoopFiles(spark).read(place) == b"by this machine"


def test_other_schemes_need_spark() -> None:
    with pytest.raises(ConfigError, match="this location is not on a local file system"):
        files_of("s3a://bucket/checkpoint")


def test_a_place_that_cannot_be_reached_is_one_line(spark: SparkSession) -> None:
    with pytest.raises(HomeostatError, match=r"^nowhere://host/x: Spark cannot reach this location: [^\n]*nowhere"):
        HadoopFiles(spark).exists("nowhere://host/x")


def test_a_local_disk_renames_at_once_and_a_system_that_copies_does_not(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert LocalFiles().renames_at_once(str(tmp_path / "ckpt"))

    def copy_and_delete(before: Path, after: Path) -> None:
        shutil.copytree(before, after)
        shutil.rmtree(before)

    monkeypatch.setattr(Path, "rename", copy_and_delete)
    assert not LocalFiles().renames_at_once(str(tmp_path / "ckpt"))
    assert list(tmp_path.iterdir()) == []
