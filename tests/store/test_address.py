"""What names a log, and that the password of a database goes nowhere else."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError
from homeostat.store.address import (
    PASSWORD_VARIABLE,
    PostgresAddress,
    hand_down,
    is_missing,
    log_address,
    password_of,
    resolved,
    without_password,
)

URL = "postgresql://anna:p%40ss@db1:5433,db2:5433/logs?sslmode=require"


def test_a_text_is_a_path_or_an_address() -> None:
    assert log_address("logs/homeostat.sqlite") == Path("logs/homeostat.sqlite")
    assert log_address("postgres.sqlite") == Path("postgres.sqlite")
    address = log_address(URL)
    assert address == PostgresAddress("postgresql://anna@db1:5433,db2:5433/logs?sslmode=require", "p@ss")
    assert log_address(address) == address
    assert log_address("postgres://db/logs") == PostgresAddress("postgres://db/logs")
    assert log_address("postgresql://db/logs?password=p%26s&options=-csearch_path%3Da%20b") == PostgresAddress(
        "postgresql://db/logs?options=-csearch_path%3Da%20b", "p&s"
    )


def test_the_password_is_not_printed() -> None:
    for text in (str(log_address(URL)), repr(log_address(URL)), without_password(URL), f"{log_address(URL)}"):
        assert "p@ss" not in text
        assert "p%40ss" not in text
    assert without_password("logs/homeostat.sqlite") == "logs/homeostat.sqlite"
    with pytest.raises(ConfigError) as refused:
        log_address("postgresql://anna:p@ss@[db/logs")
    assert "p@ss" not in refused.value.line


def test_the_password_is_in_the_address_or_in_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    bare = PostgresAddress("postgresql://db/logs")
    assert password_of(bare, {}) == ""
    assert password_of(bare, {PASSWORD_VARIABLE: "secret"}) == "secret"
    assert password_of(PostgresAddress(bare.text, "own"), {PASSWORD_VARIABLE: "secret"}) == "own"
    monkeypatch.delenv(PASSWORD_VARIABLE, raising=False)
    hand_down(Path("log.sqlite"))
    hand_down(bare)
    assert PASSWORD_VARIABLE not in os.environ
    monkeypatch.setenv(PASSWORD_VARIABLE, "another")
    hand_down(PostgresAddress(bare.text, "own"))
    assert os.environ[PASSWORD_VARIABLE] == "own"


def test_only_a_file_can_be_missing_or_relative(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    address = PostgresAddress("postgresql://db/logs")
    assert (is_missing(address), resolved(address)) == (False, address)
    assert (is_missing(Path("log")), resolved(Path("log"))) == (True, tmp_path / "log")
