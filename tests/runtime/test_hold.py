"""A manager holds the directory, the identity and the log of its application, and lets go of all of them."""

from __future__ import annotations

import os
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError, LeaseLostError, NewerLogError
from homeostat.core.records import Record
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.identity import IDENTITY, Identity, identity_of_name
from homeostat.runtime.launch import LEASE
from homeostat.runtime.lease import Lease, LeaseTakenError
from homeostat.runtime.store_lease import StoreLease
from homeostat.store.address import LogAddress
from homeostat.store.opening import open_store
from homeostat.store.registered_applications import ApplicationTable
from homeostat.store.sqlite import SqliteStore
from support.postgres import PostgresServer


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


def on_another_machine(identity: Identity, log: LogAddress, monkeypatch: pytest.MonkeyPatch, state: Path) -> None:
    """As if the manager ran on another machine: neither its locks nor its list of applications can be seen here."""
    monkeypatch.setenv("XDG_STATE_HOME", str(state))
    with closing(open_store(log)) as store:
        table = ApplicationTable(store)
        holder = table.holder(identity.id)
        assert table.take(identity.id, replace(holder, kernel="other", host="node-7"), instead_of=holder)


def test_an_application_with_a_name_is_the_same_on_every_machine_and_has_one_manager(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = postgres.new_address()
    here, there = tmp_path / "here", tmp_path / "there" / "other"
    with ApplicationHold(here, log, application="words") as first:
        with closing(first.open_log("words/counting")) as store:
            store.append("words/counting", [Record("a-1", "action", 1.0, "grow")])
        on_another_machine(first.identity, log, monkeypatch, tmp_path / "state")
        with (
            pytest.raises(LeaseTakenError, match="another manager already controls this application") as refused,
            ApplicationHold(there, log, application="words"),
        ):
            pass
        assert f"(process {os.getpid()} on node-7, in {here})" in refused.value.line
        assert "give this one another name than `application` = 'words'" in refused.value.line
        assert not first.lost
    with ApplicationHold(there, log, application="words") as second:
        assert (second.name, second.identity) == ("words", first.identity)
        with closing(second.open_log("words/counting")) as store:
            assert [action.id for action in store.open_intents("words/counting")] == ["a-1"]
    with ApplicationHold(tmp_path / "words", log) as namesake:
        assert namesake.name.startswith("words-"), "a directory of that name is another application"


def test_a_manager_that_does_not_respond_is_replaced_and_can_no_longer_write(
    postgres: PostgresServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    log = postgres.new_address()
    first = StoreLease(log, identity_of_name("words"), tmp_path / "here", beat_s=3600.0)
    first.take()
    with closing(open_store(log)) as store:
        first.enrol(store)
        first.bind(store, "words/counting")
        store.append("words/counting", [Record("a-1", "action", 1.0, "before")])
        on_another_machine(identity_of_name("words"), log, monkeypatch, tmp_path / "state")
        second = StoreLease(log, identity_of_name("words"), tmp_path / "there", watch_s=0.5)
        second.take()
        with pytest.raises(LeaseLostError, match="another manager has taken over this application"):
            store.append("words/counting", [Record("a-2", "action", 2.0, "after")])
        with pytest.raises(LeaseLostError, match="another manager has taken over this application"):
            store.save_state("words/counting", "loop", {})
        assert store.ids("words/counting", ["action"]) == ["a-1"]
    second.release()
    first.release()
