"""Gaps in the log of a file source are found, and only where it is clear which offset belongs to the source."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from homeostat.checkpoint.file_source_log import missing_entries
from support.small_checkpoint import checkpoint, put


def write_offsets(root: Path, *offsets: str) -> None:
    put(root / "offsets" / "1", "\n".join(["v1", json.dumps({"conf": {}}), *offsets]))


def write_entries(root: Path, source: int, *names: str) -> None:
    for name in names:
        put(root / "sources" / str(source) / name, "v1")


@pytest.mark.parametrize(
    ("names", "missing"),
    [
        (("0", "1", "2", "3"), []),
        (("0", "2", "3"), ["sources/0/1"]),
        (("2.compact", "3"), []),
        (("2.compact",), ["sources/0/3"]),
    ],
)
def test_entries_up_to_the_latest_offset_must_exist(tmp_path: Path, names: tuple[str, ...], missing: list[str]) -> None:
    write_offsets(tmp_path, '{"logOffset":3}')
    write_entries(tmp_path, 0, *names)
    assert list(missing_entries(checkpoint(tmp_path))) == missing


def test_offsets_of_other_sources_are_left_alone(tmp_path: Path) -> None:
    write_offsets(tmp_path, '{"topic":{"0":7}}', '{"logOffset":1}')
    write_entries(tmp_path, 0, "0")
    write_entries(tmp_path, 1, "1")
    assert list(missing_entries(checkpoint(tmp_path))) == ["sources/1/0"]


def test_a_source_that_is_used_twice_is_not_judged(tmp_path: Path) -> None:
    write_offsets(tmp_path, '{"logOffset":3}', '{"logOffset":3}')
    write_entries(tmp_path, 0, "0")
    assert list(missing_entries(checkpoint(tmp_path))) == []
