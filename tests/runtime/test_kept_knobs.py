"""A driver finds the settings of the one before it, also on another machine if the log is in a database."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError, LeaseLostError
from homeostat.core.record_json import JSON
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.kept_knobs import STATE, KeptKnobs
from homeostat.runtime.launch import KNOBS
from homeostat.store.address import LogAddress
from homeostat.store.opening import open_store
from homeostat.store.protocol import SET_ASIDE
from homeostat.store.registered_applications import ApplicationTable
from support.postgres import PostgresServer

SETTINGS = {"executors": {"counting": 4}, "values": {"trigger_s.counting": 10.0, "state_partitions.counting": 16}}


class Machine:
    """A directory in which drivers of the application `words` run."""

    def __init__(self, directory: Path, log: LogAddress) -> None:
        self.directory, self.log, self.lines = directory / "any name", log, list[str]()

    def hold(self) -> ApplicationHold:
        return ApplicationHold(self.directory, self.log, application="words")

    def knobs(self, hold: ApplicationHold) -> KeptKnobs:
        return KeptKnobs(self.directory / KNOBS, self.log, hold, self.lines.append)

    def read(self) -> object:
        with self.hold() as hold:
            return self.knobs(hold).read()


def test_a_driver_on_another_machine_finds_them_in_the_database(postgres: PostgresServer, tmp_path: Path) -> None:
    log = postgres.new_address()
    first, second = Machine(tmp_path / "a", log), Machine(tmp_path / "b", log)
    with first.hold() as hold:
        assert first.knobs(hold).read() == {}
        first.knobs(hold).write({"executors": {"counting": 2}, "values": {}})
        first.knobs(hold).write(SETTINGS)
    assert second.read() == SETTINGS
    with second.hold() as hold:
        second.knobs(hold).write({**SETTINGS, "executors": {"counting": 5}})
    assert first.read() == {**SETTINGS, "executors": {"counting": 5}}, "and not those in its own file"
    with closing(open_store(log, read_only=True)) as store:
        assert store.runs() == [], "settings alone are no run"


def test_a_local_log_leaves_them_in_the_directory(tmp_path: Path) -> None:
    log = tmp_path / "log.sqlite"
    first, second = Machine(tmp_path / "a", log), Machine(tmp_path / "b", log)
    with first.hold() as hold:
        first.knobs(hold).write(SETTINGS)
    assert (first.read(), second.read()) == (SETTINGS, {})


def test_those_in_the_directory_are_taken_along_into_a_new_database(postgres: PostgresServer, tmp_path: Path) -> None:
    before = Machine(tmp_path, tmp_path / "log.sqlite")
    with before.hold() as hold:
        before.knobs(hold).write(SETTINGS)
    assert Machine(tmp_path, postgres.new_address()).read() == SETTINGS


def test_damaged_ones_are_set_aside_and_newer_ones_refused(postgres: PostgresServer, tmp_path: Path) -> None:
    machine = Machine(tmp_path, postgres.new_address())
    damaged: list[JSON] = [[1], {"values": {"trigger_s.counting": "soon"}}, {"executors": {"counting": 0}}]
    with machine.hold() as hold:
        for content in damaged:
            with closing(hold.open_log(hold.name)) as store:
                store.save_state(hold.name, STATE, content)
            assert machine.knobs(hold).read() == {}
            with closing(hold.open_log(hold.name)) as store:
                assert store.load_state(hold.name, f"{STATE}{SET_ASIDE}") == content
        assert "the settings of words cannot be read" in machine.lines[-1]
        with closing(hold.open_log(hold.name)) as store:
            store.save_state(hold.name, STATE, {"format": 99})
        with pytest.raises(ConfigError, match="a newer Homeostat wrote these settings"):
            machine.knobs(hold).read()


def test_a_driver_that_was_replaced_cannot_overwrite_them(postgres: PostgresServer, tmp_path: Path) -> None:
    machine = Machine(tmp_path, postgres.new_address())
    with machine.hold() as hold:
        machine.knobs(hold).write(SETTINGS)
        with closing(open_store(machine.log)) as store:
            table = ApplicationTable(store)
            holder = table.holder(hold.identity.id)
            assert table.take(hold.identity.id, type(holder)("another"), instead_of=holder)
        with pytest.raises(LeaseLostError):
            machine.knobs(hold).write({"executors": {"counting": 9}, "values": {}})
    with closing(open_store(machine.log, read_only=True)) as store:
        assert store.load_state("words", STATE) == {"format": 2, **SETTINGS}
