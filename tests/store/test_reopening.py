"""A new file does not take over what the removed or emptied one left beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from homeostat.core.records import Record
from homeostat.store.reopening import reopen
from homeostat.store.sqlite import SqliteStore

READER = """
import sys
from homeostat.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1], read_only=True)
print(len(store.records("run")), flush=True)
sys.stdin.read()
"""


def empty(path: Path) -> None:
    os.truncate(path, 0)


@pytest.mark.parametrize("harm", [Path.unlink, empty], ids=["removed", "emptied"])
def test_the_new_file_is_sound_although_a_reader_still_has_the_old_one_open(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = tmp_path / "log.sqlite"
    old = SqliteStore(path)
    old.append("run", [Record("s-1", "symptom", 1.0, "old")])
    command = [sys.executable, "-c", READER, str(path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "1\n"
        harm(path)
        with closing(reopen(path)) as first, closing(reopen(path)) as second:
            first.append("run", [Record("s-2", "symptom", 2.0, "new")])
            old.append("run", [Record("s-3", "symptom", 3.0, "to nowhere")])
            old.close()
            second.append("run", [Record("s-4", "symptom", 4.0, "new")])
            assert [record.id for record in first.records("run")] == ["s-2", "s-4"]
        reader.communicate("")
    with closing(SqliteStore(path, read_only=True)) as store:
        assert [record.id for record in store.records("run")] == ["s-2", "s-4"]
