"""The file of accesses is bounded, and reads what it wrote."""

from __future__ import annotations

from pathlib import Path

import pytest

from homeostat.core.access_records import AccessContent, access_of
from homeostat.core.records import Record
from homeostat.store import access_file
from homeostat.store.access_file import AccessFile


def access(number: int) -> Record:
    return Record.of(f"access-{number}", float(number), AccessContent("sign-in", "alice", "operate", "::1"), "alice\n")


def test_records_are_read_newest_first_as_they_were_written(tmp_path: Path) -> None:
    file = AccessFile(tmp_path / "new" / "log.sqlite")
    records = [access(number) for number in range(5)]
    for record in records:
        file.append(record)
    assert file.newest(3) == records[:1:-1]
    assert access_of(file.newest(3)[0]) == AccessContent("sign-in", "alice", "operate", "::1")


def test_lines_that_cannot_be_read_are_left_out(tmp_path: Path) -> None:
    file = AccessFile(tmp_path / "log.sqlite")
    file.append(access(1))
    with file.path.open("a") as raw:
        raw.write('{"a": 1}\n[1, 2]\n["x", "access", "then", "", "{}"]\n["x", "access", 1, "", "[]"]\n\x00\xff\n')
    file.append(access(2))
    assert [record.id for record in file.newest(10)] == ["access-2", "access-1"]


def test_the_file_does_not_grow_without_bound(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(access_file, "LARGEST_BYTES", 2_000)
    file = AccessFile(tmp_path / "log.sqlite")
    for number in range(200):
        file.append(access(number))
    sizes = [path.stat().st_size for path in tmp_path.iterdir()]
    assert len(sizes) == 2
    assert max(sizes) < 2_500
    assert [record.id for record in file.newest(3)] == ["access-199", "access-198", "access-197"]
