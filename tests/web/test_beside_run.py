"""The dashboard beside a run: there while the run lasts, gone with it, and never in its way."""

from __future__ import annotations

import socket
import urllib.request
from pathlib import Path

import pytest

from homeostat.web import beside_run


def reached(address: str) -> bytes:
    """As soon as it listens."""
    while True:
        try:
            with urllib.request.urlopen(f"{address}index.json", timeout=30) as answer:
                return bytes(answer.read())
        except OSError as error:
            if not isinstance(getattr(error, "reason", error), ConnectionRefusedError):
                raise


def test_it_is_there_while_the_run_lasts_and_gone_afterwards(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    messages: list[str] = []
    with beside_run.dashboard(tmp_path / "log.sqlite", tmp_path / "logs" / "dashboard.out", messages.append):
        (line,) = messages
        address = line.split()[-1]
        assert b'"total":0' in reached(address)
    port = int(address.rstrip("/").rpartition(":")[2])
    with socket.socket() as tried:
        assert tried.connect_ex(("127.0.0.1", port)) != 0


def test_two_runs_at_once_get_an_address_each(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    messages: list[str] = []
    with beside_run.dashboard(tmp_path / "a.sqlite", tmp_path / "a.out", messages.append):
        reached(messages[0].split()[-1])
        with beside_run.dashboard(tmp_path / "b.sqlite", tmp_path / "b.out", messages.append):
            reached(messages[1].split()[-1])
    assert messages[0] != messages[1]


def test_where_it_is_not_installed_the_run_goes_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(beside_run, "REQUIRED_MODULES", ("no_such_module",))
    messages: list[str] = []
    with beside_run.dashboard(tmp_path / "log.sqlite", tmp_path / "out", messages.append):
        pass
    assert messages == ["no dashboard: no_such_module is not installed (pip install 'homeostat[serve]')"]


def test_where_it_cannot_start_the_run_goes_on(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    messages: list[str] = []
    with beside_run.dashboard(tmp_path / "log.sqlite", tmp_path / "file" / "logs" / "dashboard.out", messages.append):
        messages.append("the run")
    assert messages == ["no dashboard: Not a directory", "the run"]


def test_what_becomes_of_it_is_no_matter_to_the_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    (tmp_path / "log.sqlite").mkdir()
    messages: list[str] = []
    with beside_run.dashboard(tmp_path / "log.sqlite", tmp_path / "out", messages.append):
        messages.append("the run")
    assert messages[-1] == "the run"
