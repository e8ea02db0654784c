"""Which file a log is, and what its errors mean."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from homeostat.core.errors import DamagedLogError, StoreError, UnreadableError
from homeostat.store.log_file import file_id, translate_errors


def test_a_file_that_is_replaced_or_emptied_is_another_one(tmp_path: Path) -> None:
    path, other = tmp_path / "log", tmp_path / "other"
    assert file_id(path) is None
    path.write_text("x")
    other.write_text("x")
    before = file_id(path)
    other.rename(path)
    assert before is not None
    assert file_id(path) not in (None, before)
    path.write_text("")
    assert file_id(path) is None


def test_every_error_becomes_one_line_about_the_log(tmp_path: Path) -> None:
    for error, kind in (
        (sqlite3.OperationalError("no such table: runs"), DamagedLogError),
        (sqlite3.OperationalError("anything else"), StoreError),
        (OSError(13, "Permission denied"), StoreError),
        (ValueError("not JSON"), UnreadableError),
    ):
        with pytest.raises(kind, match=str(tmp_path)), translate_errors(tmp_path):
            raise error
