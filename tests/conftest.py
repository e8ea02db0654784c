"""Settings for all tests, the program as a user runs it, and a browser."""

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

pytest_plugins = ["support.spark_cluster", "support.spark_local"]

# A test that uses one of these fixtures is marked by what it needs, so that `make check` can leave it out.
NEEDED_BY_FIXTURE = {"cluster": "spark", "local_spark": "local_spark", "browser": "browser"}

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


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in NEEDED_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)


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
