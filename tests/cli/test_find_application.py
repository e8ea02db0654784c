"""Commands find the application and the log that they are about, attached or run, here or elsewhere."""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, cast

import pytest

from homeostat import settings_file
from homeostat.core.record_json import JSON
from homeostat.core.records import Record
from homeostat.runtime.announcement import announce_driver, process_start
from homeostat.runtime.identity import Identity
from homeostat.runtime.launch import STARTED, write_json
from homeostat.store.postgres import PostgresStore
from homeostat.store.sqlite import SqliteStore
from support.postgres import PostgresServer

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


def test_every_command_takes_the_address_of_a_database_and_prints_no_password(
    homeostat: Homeostat, postgres: PostgresServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = postgres.new_address()
    with closing(PostgresStore(address)) as store:
        cause = [Record("s-1", "symptom", 1.0, "rows wait"), Record("a-1", "action", 2.0, "grow", because=("s-1",))]
        store.append("words/counting", cause)
    url = address.text.replace("homeostat@", "homeostat:s3cret@")
    by_option = homeostat("log", "--store", url)
    assert "grow" in by_option.out
    monkeypatch.setenv("HOMEOSTAT_STORE", url)
    outputs = [
        homeostat(*command.split())
        for command in ("log --json", "explain a-1", "log prune", "log compact", "audit", "config show", "doctor")
    ]
    assert "rows wait" in outputs[1].out
    assert all(result.code == 0 for result in outputs[:-1]), outputs
    assert address.text in outputs[-2].out
    (check,) = [check for check in homeostat("doctor", "--json").json["checks"] if check["name"] == "log"]
    assert check["ok"]
    wrong = homeostat("log", "--store", url.replace("127.0.0.1:", "127.0.0.1:1"))
    assert (wrong.code, wrong.err.count("\n")) == (1, 1)
    assert "no PostgreSQL server answers" in wrong.err or "cannot be used" in wrong.err
    assert not any("s3cret" in text for result in (by_option, *outputs, wrong) for text in (result.out, result.err))


def test_status_reads_the_database_that_the_driver_announced(
    homeostat: Homeostat, postgres: PostgresServer, tmp_path: Path
) -> None:
    address = postgres.new_address()
    with closing(PostgresStore(address)) as store:
        body: dict[str, JSON] = {"rows": 2000, "seconds": 1.5, "trigger_s": 2.0, "arrival_per_s": 1000.0}
        store.append("words/counting", [Record("b-1", "batch", time.time(), "batch 1", body=body)])
    about = {
        "process": os.getpid(),
        "process_start": process_start(os.getpid()),
        "started_s": time.time() - 60.0,
        "queries": {"counting": "words/counting"},
        "store": str(address),
    }
    write_json(tmp_path / "words" / STARTED, about)
    status = homeostat("status", "--directory", tmp_path / "words", "--json").json
    (query,) = status["queries"]
    assert query["batch"]["rows"] == 2000
    (log,) = [use for use in status["usage"] if use["what"] == "log"]
    assert log["used"] > 10_000
    assert log["where"] == str(address)


def test_without_the_library_the_error_names_the_extra(homeostat: Homeostat, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "psycopg", None)
    result = homeostat("log", "--store", "postgresql://anna:s3cret@127.0.0.1:1/logs")
    assert (result.code, result.err) == (
        2,
        "homeostat: postgresql://anna@127.0.0.1:1/logs: psycopg, which a log on PostgreSQL needs, is not installed "
        "(pip install 'homeostat[postgres]')\n",
    )
