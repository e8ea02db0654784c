"""Settings for all tests, the `homeostat` command in this process, and a browser."""

from __future__ import annotations

import json
import os
import shutil
import signal
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import pytest
from hypothesis import settings

from homeostat.cli.main import run

pytest_plugins = [
    "support.ci",
    "support.checkpoints",
    "support.kafka",
    "support.postgres",
    "support.spark_cluster",
    "support.spark_local",
]

if TYPE_CHECKING:
    from playwright.sync_api import Browser

# Machines differ in speed, so no example has a deadline. Each run draws new examples. A failure prints the line
# `@reproduce_failure(...)` that repeats it, and is tried first in the next run.
settings.register_profile("usual", deadline=None, print_blob=True, max_examples=50)
settings.register_profile("quick", deadline=None, print_blob=True, max_examples=20)
settings.register_profile("explore", deadline=None, print_blob=True, max_examples=500)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "usual"))

# The drivers of tests live for seconds. Quick compilation warms them up with less CPU time.
os.environ.setdefault("SPARK_SUBMIT_OPTS", "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC")

# A shell makes its background jobs ignore interrupts, and tests start processes that they interrupt.
signal.signal(signal.SIGINT, signal.default_int_handler)


class CommandResult(NamedTuple):
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


Homeostat = Callable[..., CommandResult]


@pytest.fixture(scope="session", autouse=True)
def own_state(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Managers that tests start are listed here and not among the user's own applications."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))
        yield


@pytest.fixture
def homeostat(capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Homeostat:
    """Runs a command in this process, in an empty working directory."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.delenv("HOMEOSTAT_STORE", raising=False)
    monkeypatch.delenv("HOMEOSTAT_DEBUG", raising=False)

    def call(*arguments: object) -> CommandResult:
        capsys.readouterr()  # drop what was printed before
        code = run([str(argument) for argument in arguments])
        return CommandResult(code, *capsys.readouterr())

    return call


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
