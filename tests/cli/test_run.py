"""`homeostat run` with bad input: one clear line, exit code 2, and nothing is started."""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest

from homeostat.runtime import preflight
from homeostat.runtime.launch import Launch
from homeostat.store.address import PASSWORD_VARIABLE, log_address
from homeostat.store.opening import open_store
from support.postgres import GUARDED, PASSWORD, PostgresServer

Homeostat = Callable[..., Any]

APP = """\
import homeostat as hs

@hs.pipeline(objective=hs.Throughput(at_least=100))
def words(ctx):
    return None
"""


@pytest.fixture
def app(tmp_path: Path) -> Path:
    path = tmp_path / "app.py"
    path.write_text(APP)
    return path


@pytest.fixture
def checked_here(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Checks the launch in this process, which is quicker. Tests without this fixture start the process of the check,
    whose line and exit code they see."""
    monkeypatch.setattr("homeostat.cli.run._preflight", preflight.check)
    path, modules = list(sys.path), dict(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


class Quiet(BaseHTTPRequestHandler):
    def log_message(self, *_: object) -> None:
        """Nothing: it would be on the standard error of the command."""


def refused(result: Any, *words: str) -> None:
    assert result.code == 2
    assert result.out == ""
    lines = result.err.strip().splitlines()
    assert len(lines) == 1, result.err
    assert lines[0].startswith("homeostat: ")
    for word in words:
        assert word in lines[0]


def nothing_started(directory: Path) -> bool:
    return not (directory / ".homeostat").exists() and not (directory / "homeostat.sqlite").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--mode", "regular"), ("--mode", "did you mean 'regulate'?")),
        (("--for", "soon"), ("--for", "soon")),
        (("--for", "10"), ("--for", "unit")),
        (("--for", "-5 s"), ("--for",)),
        (("--conf", "spark.executor.memory"), ("--conf", "write spark.some.key=value")),
        (("--conf", "executor.memory=1g"), ("--conf", "executor.memory=1g")),
        (
            ("--conf", "spark.sql.streaming.checkpointLocation=/data/checkpoints"),
            ("--conf spark.sql.streaming.checkpointLocation: ", "checkpoints/<query>", "--directory"),
        ),
        (("--conf", "spark.master=local[2]"), ("--conf spark.master: ", "use --master URL")),
        (("--conf", "spark.sql.shuffle.partitions=8"), ("--conf spark.sql.shuffle.partitions: ", "state_partitions=")),
        (("--set", "settle=5 s"), ("--set", "section.key=value")),
        (("--set", "loop.setle=5 s"), ("--set loop.setle", "did you mean 'settle'?")),
        (("--set", "loop.settle=soon"), ("--set loop.settle", "soon")),
        (("--policy", "throughputt"), ("--policy", "did you mean 'throughput'?")),
        (("--policy", "latency"), ("--policy", "needs a latency or lag objective")),
        (("--policy", "static"), ("--policy", "the peak load that it must be sized for")),
        (("--policy", "no.such:thing"), ("no.such:thing", "cannot import 'no.such'")),
        (("--set", 'plugins.detectors=["no.such:Thing"]'), ("no.such:Thing", "cannot import 'no.such'")),
        (("--store", "."), ("this is a directory",)),
        (("--store", "app.py"), ("app.py", "this is not a Homeostat log")),
        (("--config", "missing.toml"), ("missing.toml",)),
        (("--workers", "0"), ("--workers",)),
        (("--cores", "none"), ("--cores",)),
        (("--master", "mesos://127.0.0.1:5050"), ("--master mesos://127.0.0.1:5050", "not a valid Spark master")),
        (("--master", "yarnfoo"), ("--master yarnfoo", "not a valid Spark master")),
        (
            ("--master", "k8s://https://127.0.0.1:1"),
            ("--master k8s://https://127.0.0.1:1", "no Kubernetes"),
        ),
        (
            ("--master", "spark://127.0.0.1:1"),
            ("--master spark://127.0.0.1:1", "no Spark master answers at this address"),
        ),
    ],
)
@pytest.mark.usefixtures("checked_here")
def test_an_option_that_is_wrong(
    homeostat: Homeostat, app: Path, options: tuple[str, ...], words: tuple[str, ...]
) -> None:
    refused(homeostat("run", app, *options), *words)
    assert not (app.parent / ".homeostat").exists()


@pytest.mark.slow
def test_a_port_that_answers_but_is_no_master(homeostat: Homeostat, app: Path) -> None:
    """Such as that of the master's own page."""
    with HTTPServer(("127.0.0.1", 0), Quiet) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True)
        thread.start()
        master = f"spark://127.0.0.1:{server.server_port}"
        refused(
            homeostat("run", app, "--master", master),
            f"--master {master}: the process that answers there is not a Spark master",
        )
        server.shutdown()
        thread.join()
    assert not (app.parent / ".homeostat").exists()


@pytest.mark.slow
@pytest.mark.usefixtures("checked_here")
def test_yarn_without_its_settings(homeostat: Homeostat, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("HADOOP_CONF_DIR", raising=False)
    monkeypatch.delenv("YARN_CONF_DIR", raising=False)
    refused(homeostat("run", app, "--master", "yarn"), "--master yarn", "set HADOOP_CONF_DIR or YARN_CONF_DIR")


@pytest.mark.slow
@pytest.mark.usefixtures("checked_here")
def test_a_log_that_cannot_be_written_is_one_line(homeostat: Homeostat, app: Path) -> None:
    result = homeostat("run", app, "--store", app / "log.sqlite", "--no-dashboard")
    assert (result.code, result.out) == (1, "")
    (line,) = result.err.splitlines()
    assert line.startswith(f"homeostat: {app / 'log.sqlite'}: the log cannot be opened: ")
    assert not (app.parent / ".homeostat").exists()


@pytest.mark.slow
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("print('hello')\nraise SystemExit\n", ("app.py:2", "importing the file raised SystemExit")),
        ("import os\n\nos._exit(7)\n", ("app.py", "importing failed with code 7")),
    ],
)
def test_a_file_that_is_no_application(homeostat: Homeostat, app: Path, text: str, words: tuple[str, ...]) -> None:
    app.write_text(text)
    refused(homeostat("run", app), *words)
    assert nothing_started(app.parent)


@pytest.mark.slow
@pytest.mark.usefixtures("checked_here")
@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("x = 1\n", ("app.py", "the file defines no pipeline")),
        ("x = 1\nx = 1 / 0\n", ("app.py:2", "importing the file raised ZeroDivisionError: division by zero")),
    ],
)
def test_a_file_without_a_pipeline(homeostat: Homeostat, app: Path, text: str, words: tuple[str, ...]) -> None:
    app.write_text(text)
    refused(homeostat("run", app), *words)
    assert nothing_started(app.parent)


def test_a_file_that_is_not_there(homeostat: Homeostat, tmp_path: Path) -> None:
    refused(homeostat("run", tmp_path / "ap.py"), "ap.py", "no such application file")
    refused(homeostat("run", tmp_path / "ap.py:words"), "ap.py: ", "no such application file")
    refused(homeostat("run", tmp_path), "no such application file")
    refused(homeostat("run"), "missing argument")
    assert nothing_started(tmp_path)


@pytest.mark.slow
@pytest.mark.usefixtures("checked_here")
def test_a_pipeline_that_is_not_there(homeostat: Homeostat, app: Path) -> None:
    refused(homeostat("run", f"{app}:word"), "the file has no pipeline 'word' (did you mean 'words'?)")
    assert nothing_started(app.parent)


def test_a_file_that_never_ends_loading(homeostat: Homeostat, app: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("homeostat.cli.run.LOADING_LIMIT_S", 2.0)
    app.write_text("import time\n\ntime.sleep(600)\n")
    refused(homeostat("run", app), "app.py", "took more than 2 s", "do not start queries at the top")


def test_a_setting_of_the_file_that_is_wrong_is_reported_with_its_line(homeostat: Homeostat, app: Path) -> None:
    (app.parent / "homeostat.toml").write_text('mode = "observe"\n\n[loop]\nsettle = "soon"\n')
    refused(homeostat("run", app), "homeostat.toml:4", "settle")


@pytest.mark.slow
@pytest.mark.usefixtures("checked_here")
def test_a_directory_that_cannot_be_made_is_one_line(homeostat: Homeostat, app: Path, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    inside = tmp_path / "file" / "kept"
    result = homeostat("run", app, "--master", "local[1]", "--directory", inside, "--no-dashboard")
    assert (result.code, result.out) == (1, "")
    assert result.err == f"homeostat: {inside}: not a directory\n"


@pytest.mark.parametrize("option", ["--directory", "--store", "--config"])
@pytest.mark.parametrize("place", ["hdfs://name/dir", "s3a://bucket/dir", "file:///tmp/x"])
def test_a_uri_is_refused_before_anything_is_made(
    homeostat: Homeostat, app: Path, monkeypatch: pytest.MonkeyPatch, option: str, place: str
) -> None:
    monkeypatch.chdir(app.parent)
    before = list(app.parent.iterdir())
    result = homeostat("run", str(app), option, place)
    assert result.code == 2
    assert result.err.count("\n") == 1
    assert "is a URI, and only local paths are supported" in result.err
    assert list(app.parent.iterdir()) == before


@pytest.mark.usefixtures("checked_here")
@pytest.mark.parametrize("by", ["option", "file"])
def test_the_driver_gets_the_password_of_the_log_in_its_environment(
    homeostat: Homeostat, postgres: PostgresServer, app: Path, monkeypatch: pytest.MonkeyPatch, by: str
) -> None:
    """Everyone on the machine can read its command line."""
    launches: list[tuple[Launch, object]] = []
    monkeypatch.setattr("homeostat.cli.run._supervise", lambda launch, log, **_: launches.append((launch, log)))
    monkeypatch.setenv(PASSWORD_VARIABLE, "")
    monkeypatch.chdir(app.parent)
    empty = postgres.new_address()
    schema = empty.text.rpartition("%3D")[2]
    postgres.ask(f"GRANT ALL ON SCHEMA {schema} TO {GUARDED}")
    url = postgres.address(schema, user=f"{GUARDED}:{quote(PASSWORD, safe='')}").text
    if by == "file":
        Path("homeostat.toml").write_text(f'store = "{url}"\n')
    result = homeostat("run", str(app), *(("--store", url) if by == "option" else ()))
    assert (result.code, result.err) == (0, "")
    ((launch, log),) = launches
    assert str(log) == postgres.address(schema, user=GUARDED).text
    assert "s3cret" not in launch.to_json()
    assert os.environ[PASSWORD_VARIABLE] == PASSWORD
    with closing(open_store(log_address(str(log)), read_only=True)) as store:
        assert store.runs() == []
