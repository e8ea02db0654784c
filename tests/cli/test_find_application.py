"""Commands find the application and the log that they are about, attached or run, here or elsewhere."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from homeostat import settings_file
from homeostat.core.records import Record
from homeostat.runtime.announcement import announce_driver
from homeostat.runtime.identity import Identity
from homeostat.store.sqlite import SqliteStore

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

Homeostat = Callable[..., Any]
SESSION = cast(
    "SparkSession",
    SimpleNamespace(sparkContext=SimpleNamespace(applicationId="app-1", uiWebUrl="http://127.0.0.1:4040")),
)


def attached(home: Path, name: str, *queries: str) -> Path:
    """What `hs.attach` leaves for an application that runs in this very process."""
    home.mkdir(parents=True, exist_ok=True)
    settings = home / f"{name}.toml"
    settings.write_text(f'store = "{home / name}.sqlite"\n')
    directory = home / ".homeostat" / name
    runs = {query: f"{name}/{query}" for query in queries}
    announce_driver(directory, SESSION, settings_file.load(settings, environ={}), Identity("1f" * 16), runs)
    store = SqliteStore(home / f"{name}.sqlite")
    for run in runs.values():
        store.append(run, [Record("g-1", "engine", time.time(), f"{run} runs")])
    store.close()
    return directory


def test_an_attached_application_is_found_in_its_working_directory(homeostat: Homeostat, tmp_path: Path) -> None:
    attached(tmp_path, "clicks", "words")
    state = homeostat("status", "--json").json
    assert (state["alive"], [query["name"] for query in state["queries"]]) == (True, ["words"])
    log = homeostat("log")
    assert (log.code, log.err) == (0, "")
    assert "clicks/words runs" in log.out
    assert homeostat("explain", "g-1").code == 0


def test_it_is_found_from_another_directory_and_that_is_said(homeostat: Homeostat, tmp_path: Path) -> None:
    directory = attached(tmp_path / "there", "clicks", "words")
    line = f"homeostat: no application was started here; showing the one in {directory}\n"
    state = homeostat("status", "--json")
    assert (state.json["directory"], state.err) == (str(directory), line)
    log = homeostat("log")
    assert (log.code, log.err) == (0, line)
    assert "clicks/words runs" in log.out


def test_before_its_first_query_an_application_is_known(homeostat: Homeostat, tmp_path: Path) -> None:
    attached(tmp_path, "clicks")
    result = homeostat("status")
    assert result.code == 3
    assert "no streaming query is running" in result.out
    assert f"process {os.getpid()}" in result.out


def test_of_several_elsewhere_one_must_be_chosen(homeostat: Homeostat, tmp_path: Path) -> None:
    first, second = (attached(tmp_path / "there", name, "words") for name in ("clicks", "orders"))
    result = homeostat("status")
    assert (result.code, result.err.count("\n")) == (2, 1)
    assert f"several applications are running on this machine (choose one: {first}, {second})" in result.err
    assert homeostat("status", "--directory", second, "--json").json["directory"] == str(second)
    result = homeostat("log")
    assert f"--store: several applications are running on this machine (choose one: {tmp_path}" in result.err


@pytest.mark.parametrize("named", ["option", "file", "configuration"])
def test_a_log_that_is_named_comes_first(homeostat: Homeostat, tmp_path: Path, named: str) -> None:
    attached(tmp_path / "there", "clicks", "words")
    path = tmp_path / ("homeostat.sqlite" if named == "file" else "own.sqlite")
    store = SqliteStore(path)
    store.append("own", [Record("g-1", "engine", 1.0, "my own runs")])
    store.close()
    if named == "configuration":
        (tmp_path / "homeostat.toml").write_text('store = "own.sqlite"\n')
    result = homeostat("log", *(("--store", path) if named == "option" else ()))
    assert (result.code, result.err) == (0, "")
    assert "my own runs" in result.out


def test_the_log_names_the_other_runs_on_stderr(homeostat: Homeostat, tmp_path: Path) -> None:
    attached(tmp_path, "clicks", "words", "orders")
    result = homeostat("log")
    assert result.err == "homeostat: showing run clicks/orders; --run chooses another: clicks/words\n"
    chosen = homeostat("log", "--run", "clicks/words")
    assert (chosen.code, chosen.err) == (0, "")
    assert "clicks/words runs" in chosen.out
