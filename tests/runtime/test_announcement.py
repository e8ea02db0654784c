"""What a manager announces, and how other processes find it."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, cast

import pytest

from homeostat import settings_file
from homeostat.runtime import announcement
from homeostat.runtime.announcement import (
    announce_driver,
    directories_elsewhere,
    directories_here,
    is_running,
    read_announcement,
    withdraw,
)
from homeostat.runtime.identity import Identity
from homeostat.runtime.launch import STARTED, write_json

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

# All that an announcement asks of a session.
SESSION = cast(
    "SparkSession",
    SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app-1", uiWebUrl="http://127.0.0.1:4040")),
)


@pytest.fixture(autouse=True)
def own_list(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    return tmp_path / "state" / "homeostat" / "applications"


def announced(directory: Path) -> Path:
    announce_driver(directory, SESSION, settings_file.load(environ={}), Identity("1f" * 16), {"words": "clicks/words"})
    return directory


def test_the_announcement_says_what_is_watched_and_where_its_log_is(tmp_path: Path) -> None:
    facts = read_announcement(announced(tmp_path / "clicks"))
    assert facts is not None
    assert (facts["process"], facts["application"]) == (os.getpid(), "app-1")
    assert facts["queries"] == {"words": "clicks/words"}
    assert Path(facts["store"]).is_absolute()
    assert facts["limits"]["log"] == settings_file.load(environ={}).log.largest
    assert facts["limits"]["most_savepoints"] == 20
    assert is_running(facts)


def test_it_is_found_from_another_working_directory_until_it_is_withdrawn(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, own_list: Path
) -> None:
    directory = announced(tmp_path / "there" / ".homeostat" / "clicks")
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    assert directories_here() == []
    assert directories_elsewhere() == [directory]
    monkeypatch.chdir(tmp_path / "there")
    assert directories_here() == [Path(".homeostat") / "clicks"]
    withdraw(directory)
    assert (directories_here(), directories_elsewhere()) == ([], [])
    assert list(own_list.iterdir()) == []


def test_an_application_that_has_ended_or_runs_on_another_host_is_not_found(tmp_path: Path, own_list: Path) -> None:
    directory = announced(tmp_path / "clicks")
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    write_json(directory / STARTED, {"process": ended.pid, "started_s": time.time()})
    assert directories_elsewhere() == []
    directory = announced(tmp_path / "clicks")
    (entry,) = own_list.iterdir()
    write_json(entry, {"directory": str(directory), "host": "another"})
    assert directories_elsewhere() == []


@pytest.mark.parametrize("step_s", [-3600.0, 3600.0])
def test_setting_the_clock_ends_no_application(tmp_path: Path, step_s: float) -> None:
    """The system tells the start of a process by the clock of now, and so by another one than the announcement."""
    facts = read_announcement(announced(tmp_path / "clicks"))
    assert facts is not None
    assert is_running({**facts, "started_s": facts["started_s"] + step_s})
    assert not is_running({**facts, "process_start": facts["process_start"] - 1})


def test_a_damaged_list_or_announcement_is_ignored(tmp_path: Path, own_list: Path) -> None:
    directory = announced(tmp_path / "clicks")
    (own_list / "broken.json").write_text("{")
    (directory / STARTED).write_text("[]")
    assert read_announcement(directory) is None
    assert directories_elsewhere() == []
    assert not is_running({"process": "none"})


def test_a_user_without_a_home_directory_can_still_announce(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("could not determine home directory")

    monkeypatch.setattr(announcement, "user_state", no_home)
    directory = announced(tmp_path / "clicks")
    assert read_announcement(directory) is not None
    assert directories_elsewhere() == []
    withdraw(directory)
    assert read_announcement(directory) is None
