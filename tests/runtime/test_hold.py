"""A manager holds the directory, the identity and the log of its application, and lets go of all of them."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError, NewerLogError
from homeostat.core.records import Record
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.identity import IDENTITY
from homeostat.runtime.launch import LEASE
from homeostat.runtime.lease import Lease, LeaseTakenError
from homeostat.store.sqlite import SqliteStore


def test_what_it_holds_is_free_again_after_it_and_after_a_refusal(tmp_path: Path) -> None:
    directory, log = tmp_path / "words", tmp_path / "log.sqlite"
    with ApplicationHold(directory, log) as hold:
        assert (hold.name, hold.holds_log, hold.lost) == ("words", True, False)
        with pytest.raises(LeaseTakenError), ApplicationHold(directory, tmp_path / "other.sqlite"):
            pass
    (tmp_path / "directory").mkdir()
    with pytest.raises(Exception, match="this is a directory"), ApplicationHold(directory, tmp_path / "directory"):
        pass
    with Lease(directory / LEASE):
        pass


def test_only_it_writes_its_runs(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    with ApplicationHold(tmp_path / "words", log) as hold, closing(SqliteStore(log)) as store:
        hold.enrol(store, "words/counting")
        store.append("words/counting", [Record("s-1", "symptom", 1.0, "")])
        assert [info.name for info in store.runs()] == ["words/counting"]


def test_a_user_without_a_home_directory_is_served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("no home")

    monkeypatch.setattr("homeostat.runtime.hold.user_state", no_home)
    with ApplicationHold(tmp_path / "words", tmp_path / "log.sqlite") as hold:
        assert hold.name == "words"


def test_a_damaged_identity_or_a_newer_log_is_refused_before_anything_is_taken(tmp_path: Path) -> None:
    directory, log = tmp_path / "words", tmp_path / "log.sqlite"
    SqliteStore(log).close()
    with closing(SqliteStore(log)) as store, store.transaction() as connection:
        connection.execute("PRAGMA user_version = 99")
    with pytest.raises(NewerLogError), ApplicationHold(directory, log):
        pass
    (directory / IDENTITY).write_text("garbage")
    with pytest.raises(ConfigError), ApplicationHold(directory, tmp_path / "new.sqlite"):
        pass
    with Lease(directory / LEASE):
        pass


def test_a_directory_of_version_0_1_0_takes_over_its_runs_and_a_new_one_of_that_name_does_not(tmp_path: Path) -> None:
    old, new, log = tmp_path / "old" / "words", tmp_path / "new" / "words", tmp_path / "log.sqlite"
    old.mkdir(parents=True)
    (old / LEASE).touch()
    with closing(SqliteStore(log)) as store:
        store.append("words/counting", [Record("a-1", "action", 1.0, "by version 0.1.0")])
    with ApplicationHold(new, log) as hold:
        assert hold.name != "words"
    with ApplicationHold(old, log) as hold, closing(SqliteStore(log)) as store:
        hold.enrol(store, "words/counting")
        assert hold.name == "words"
        assert [record.id for record in store.open_intents("words/counting")] == ["a-1"]
