"""A log file survives crashes, is shared by processes, and refuses what it cannot use."""

from __future__ import annotations

import os
import shutil
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from functools import partial
from pathlib import Path

import pytest

from homeostat.core.errors import StoreError
from homeostat.core.records import Record
from homeostat.store.sqlite import SqliteStore
from homeostat.testing import check_survives_kill


@pytest.mark.slow
def test_a_killed_writer_loses_nothing_that_returned_and_leaves_nothing_in_part(tmp_path: Path) -> None:
    check_survives_kill(partial(SqliteStore, tmp_path / "log.sqlite"))


def test_a_log_is_there_again_after_it_was_closed(tmp_path: Path) -> None:
    action = Record("a-1", "action", 1.0, "grow", body={"desired": {"parallelism.count": 8}})
    with closing(SqliteStore(tmp_path / "new directory" / "log #1?.sqlite")) as store:
        store.append("run", [action])
        store.save_state("run", "mode", "advise")
    with closing(SqliteStore(tmp_path / "new directory" / "log #1?.sqlite")) as store:
        assert store.open_intents("run") == [action]
        assert store.load_state("run", "mode") == "advise"


READER = """
import sys
from homeostat.store.sqlite import SqliteStore
store = SqliteStore(sys.argv[1], read_only=True)
for _ in sys.stdin:
    print(*[record.id for record in store.records("run")], flush=True)
"""


def test_other_processes_read_the_log_while_it_is_written(tmp_path: Path) -> None:
    with closing(SqliteStore(tmp_path / "log.sqlite")) as store:
        with subprocess.Popen(
            [sys.executable, "-c", READER, store.path], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        ) as reader:
            assert reader.stdin is not None
            assert reader.stdout is not None
            for number in range(3):
                store.append("run", [Record(f"s-{number}", "symptom", float(number), "")])
                print("read", file=reader.stdin, flush=True)
                assert reader.stdout.readline().split() == [f"s-{n}" for n in range(number + 1)]
            reader.stdin.close()
        assert reader.returncode == 0


def test_an_append_that_fails_in_the_middle_leaves_no_trace(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with closing(SqliteStore(path)) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
        with closing(sqlite3.connect(path)) as other:
            other.execute(
                "CREATE TRIGGER fail BEFORE INSERT ON records WHEN NEW.id = 's-3' "
                "BEGIN SELECT RAISE(ABORT, 'the disk broke'); END"
            )
        bad = [Record(f"s-{n}", "symptom", 1.0, "", because=("s-1",)) for n in (2, 3)]
        with pytest.raises(StoreError, match="the disk broke"):
            store.append("run", bad)
        assert [record.id for record in store.chain("run", "s-1")] == ["s-1"]
        assert store.runs()[0].counts == {"symptom": 1}
        store.append("run", bad[:1])
        assert [record.id for record in store.chain("run", "s-1")] == ["s-1", "s-2"]


@pytest.mark.parametrize(("kind", "waits"), [("action", True), ("symptom", False), ("outcome", False)])
def test_only_an_intent_waits_for_the_disk(tmp_path: Path, kind: str, waits: bool) -> None:
    with closing(SqliteStore(tmp_path / "log.sqlite")) as store:
        statements: list[str] = []
        store._connection.set_trace_callback(statements.append)
        store.append("run", [Record("s-1", "symptom", 1.0, ""), Record("x-1", kind, 1.0, "")])
        before_commit = statements[: statements.index("COMMIT")]
        modes = [line.split()[-1] for line in before_commit if line.startswith("PRAGMA synchronous")]
        assert modes[-1] == ("FULL" if waits else "NORMAL")


@pytest.mark.parametrize("read_only", [False, True])
def test_a_file_that_is_no_log_is_refused_and_not_touched(tmp_path: Path, read_only: bool) -> None:
    text, foreign = tmp_path / "notes.txt", tmp_path / "other.db"
    text.write_text("not a database, " * 200)
    with closing(sqlite3.connect(foreign)) as other:
        other.execute("CREATE TABLE addresses (name)")
    for path, message in ((text, "this is not a Homeostat log"), (foreign, "the database of another program")):
        before = path.read_bytes()
        assert message in _refusal(path, read_only=read_only)
        assert path.read_bytes() == before


def test_the_log_of_a_newer_version_is_refused_and_not_touched(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    SqliteStore(path).close()
    with closing(sqlite3.connect(path)) as other:
        other.execute("PRAGMA user_version = 7")
    before = path.read_bytes()
    assert "a newer Homeostat wrote this log (version 7; this one reads 2) (upgrade homeostat" in _refusal(path)
    assert path.read_bytes() == before


def test_a_damaged_log_is_an_error_that_says_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with closing(SqliteStore(path)) as store:
        store.append("run", [Record(f"s-{n}", "symptom", float(n), "x" * 500) for n in range(500)])
    whole = path.read_bytes()
    path.write_bytes(whole[:4096] + b"\xa5" * (len(whole) - 4096))
    with (
        pytest.raises(StoreError, match=r"the log is damaged .*move it away to start a new log"),
        closing(SqliteStore(path)) as store,
    ):
        store.records("run")


def test_a_body_that_somebody_edited_is_an_error(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    with closing(SqliteStore(path)) as store:
        store.append("run", [Record("s-1", "symptom", 1.0, "")])
        with closing(sqlite3.connect(path)) as other, other:
            other.execute("UPDATE records SET body = '{'")
        with pytest.raises(StoreError, match="the log cannot be read"):
            store.records("run")


def test_places_where_no_log_can_be_are_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    assert "this is a directory (give a file in it)" in _refusal(tmp_path)
    assert "cannot be opened" in _refusal(tmp_path / "file" / "log.sqlite")
    assert "there is no log (check the path" in _refusal(tmp_path / "none.sqlite", read_only=True)
    assert "the file has no log yet (start a run" in _refusal(tmp_path / "file", read_only=True)
    assert not (tmp_path / "none.sqlite").exists()


def test_a_read_only_place_refuses_writing_and_allows_reading() -> None:
    with _directory_for_everybody() as directory:
        path = directory / "log.sqlite"
        record = Record("s-1", "symptom", 1.0, "")
        with closing(SqliteStore(path)) as store:
            store.append("run", [record])
        path.chmod(0o444)
        directory.chmod(0o555)
        with _without_privileges():
            assert "the log cannot be" in _refusal(path)
            assert "the log cannot be opened" in _refusal(directory / "new.sqlite")
            with closing(SqliteStore(path, read_only=True)) as reader:
                assert reader.records("run") == [record]


def test_a_log_opened_for_reading_is_not_written(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    SqliteStore(path).close()
    with closing(SqliteStore(path, read_only=True)) as reader:
        with pytest.raises(StoreError, match="the log cannot be written"):
            reader.append("run", [Record("s-1", "symptom", 1.0, "")])
        with pytest.raises(StoreError, match="the log cannot be written"):
            reader.save_state("run", "mode", "advise")


def test_a_closed_log_says_so(tmp_path: Path) -> None:
    store = SqliteStore(tmp_path / "log.sqlite")
    store.close()
    store.close()
    with pytest.raises(StoreError, match="closed"):
        store.runs()


def test_processes_that_create_the_same_log_at_once_share_it(tmp_path: Path) -> None:
    path = tmp_path / "log.sqlite"
    script = (
        "import sys\n"
        "from homeostat.core.records import Record\n"
        "from homeostat.store.sqlite import SqliteStore\n"
        "store = SqliteStore(sys.argv[1])\n"
        "store.append('run', [Record(sys.argv[2], 'alert', 1.0, '')])\n"
        "store.close()\n"
    )
    writers = [subprocess.Popen([sys.executable, "-c", script, path, f"x-{n}"]) for n in range(4)]
    assert [writer.wait() for writer in writers] == [0, 0, 0, 0]
    with closing(SqliteStore(path)) as store:
        assert sorted(record.id for record in store.records("run")) == ["x-0", "x-1", "x-2", "x-3"]


def _refusal(path: Path, *, read_only: bool = False) -> str:
    """The one line with which a path is refused."""
    with pytest.raises(StoreError) as refused:
        SqliteStore(path, read_only=read_only)
    line = str(refused.value)
    assert str(path) in line
    assert "\n" not in line
    assert refused.value.fix
    return line


@contextmanager
def _directory_for_everybody() -> Iterator[Path]:
    directory = Path(tempfile.mkdtemp())
    directory.chmod(0o755)
    try:
        yield directory
    finally:
        directory.chmod(0o755)
        shutil.rmtree(directory)


@contextmanager
def _without_privileges() -> Iterator[None]:
    """The super-user may write anywhere; as `nobody` the permissions count."""
    user = os.geteuid()
    if user == 0:
        os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(user)
