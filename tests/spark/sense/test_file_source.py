"""The files that wait for a query: their bytes and rows, from a directory and the log in the checkpoint."""

from __future__ import annotations

import json
import math
import os
import time
from pathlib import Path

import pytest

from homeostat.spark.sense.file_source import FileSource, TooManyFilesError, local_path
from homeostat.spark.sense.source_formats import SourceOptions


class Directory:
    """An input directory, and the log of the files that batches have read, as Spark writes it."""

    def __init__(self, home: Path) -> None:
        self.input, self.log = home / "in", home / "checkpoint" / "sources" / "0"
        self.input.mkdir()
        self.log.mkdir(parents=True)
        self.now_s = 100.0

    def put(self, name: str, size: int, age_s: float = 0.0) -> Path:
        file = self.input / name
        file.parent.mkdir(exist_ok=True)
        file.write_bytes(b"x" * size)
        os.utime(file, (time.time() - age_s,) * 2)
        return file

    def read(self, entry: int | str, *files: Path) -> dict[str, int]:
        number = int(str(entry).removesuffix(".compact"))
        lines = [json.dumps({"path": file.as_uri(), "timestamp": 0, "batchId": number}) for file in files]
        (self.log / str(entry)).write_text("\n".join(["v1", *lines]))
        return {"logOffset": number}

    def source(self, **options: int) -> FileSource:
        read = SourceOptions("json", {"path": self.input.as_uri()})
        return FileSource("orders", read, self.log, lambda: self.now_s, **options)


@pytest.fixture
def directory(tmp_path: Path) -> Directory:
    return Directory(tmp_path)


def test_what_waits_is_what_was_not_read(directory: Directory) -> None:
    files = [directory.put(f"{number}.json", 100) for number in range(3)]
    directory.put("day=1/late.json", 50, age_s=300.0)
    directory.put("_temporary", 7)
    source = directory.source()
    before = source.look(None, math.nan)
    assert math.isnan(before.pending_rows)
    sample = source.look(directory.read(0, *files[:2]), 0.1)
    (part,) = sample.partitions
    assert part.name == "2 files"
    assert part.pending == 150.0
    assert sample.pending_rows == pytest.approx(15.0)
    assert part.lag_s == pytest.approx(300.0, abs=60.0)


def test_what_arrives_is_seen_at_the_next_look(directory: Directory) -> None:
    source = directory.source()
    source.look(None, 1.0)
    directory.put("new.json", 60)
    directory.now_s = 3_700.0
    assert source.look({"logOffset": 0}, 1.0).pending_rows == 60.0
    assert source.end_at(3_700.0) == 60.0
    assert source.end_at(100.0) == 0.0


def test_a_compact_entry_has_the_files_of_all_before_it(directory: Directory) -> None:
    files = [directory.put(f"{number}.json", 10) for number in range(4)]
    directory.read(0, files[0])
    directory.read("1.compact", *files[:2])
    offset = directory.read(2, files[2])
    source = directory.source()
    source.look(None, 1.0)
    assert source.position(offset) == 30.0
    assert source.look(offset, 1.0).pending_rows == 10.0
    assert source.position(offset) == 30.0
    assert math.isnan(directory.source().position({"orders": {"0": 7}}))


def test_files_that_are_moved_away_after_they_were_read_do_not_wait(directory: Directory) -> None:
    file = directory.put("a.json", 10)
    source = directory.source()
    source.look(None, 1.0)
    offset = directory.read(0, file)
    source.look(offset, 1.0)
    file.unlink()
    directory.now_s += 3_600.0
    assert source.look(offset, 1.0).pending_rows == 0.0
    assert source.end_at(directory.now_s) == 10.0


def test_too_many_files_are_refused(directory: Directory) -> None:
    for number in range(4):
        directory.put(f"{number}.json", 1)
    with pytest.raises(TooManyFilesError, match="more than 3 files"):
        directory.source(most_files=3).look(None, 1.0)


def test_only_directories_of_this_machine_are_listed() -> None:
    assert local_path("hdfs://name/in") is None
    assert local_path("/in/*.json") is None
    assert local_path("file:/in/a%20b") == Path("/in/a b")
