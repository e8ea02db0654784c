"""Settings for all tests, the program as a user runs it, and a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings

from homeostat.cli.main import run

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Machines differ in speed, so no example has a deadline. `make test` draws the same examples every time and stays as it
# is from one run to the next; HYPOTHESIS_PROFILE=explore looks for new ones.
settings.register_profile("steady", deadline=None, derandomize=True)
settings.register_profile("explore", deadline=None, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "steady"))

# Drivers of tests live for seconds: quick compilation makes them warm with less of the CPU.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# What a shell starts in the background ignores interrupts, and so would the processes that tests start and interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


class Ran(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Homeostat = Callable[..., Ran]


@pytest.fixture
def homeostat(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homeostat:
    """In this process, and in an empty working directory, so that nothing is found or left anywhere else."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("HOMEOSTAT_STORE", raising=False)
    monkeypatch.delenv("HOMEOSTAT_DEBUG", raising=False)

    def call(*arguments: object) -> Ran:
        capsys.readouterr()  # what was said before is not what this command says
        code = run([str(argument) for argument in arguments])
        return Ran(code, *capsys.readouterr())

    return call


Answering = Callable[[Mapping[str, object]], AbstractContextManager[str]]


@pytest.fixture
def answering() -> Answering:
    """A server that gives out what Spark's REST API would."""
    return _answering


@contextmanager
def _answering(answers: Mapping[str, object]) -> Iterator[str]:
    """Its address. `answers` are by the path below /api/v1 and may change meanwhile; all others are 404."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            path = self.path.removeprefix("/api/v1/")
            body = json.dumps(answers.get(path)).encode()
            self.send_response(200 if path in answers else 404)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Nobody is to hear of it."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    """Debian's Chromium."""
    from playwright.sync_api import sync_playwright

    chromium = shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed: `.ci/chromium` as root installs it")
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()
