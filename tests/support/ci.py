"""Which tests run where: markers by fixture, halves for two processes, and no skips in CI."""

from __future__ import annotations

import os
from collections.abc import Generator

import pytest

# A test that uses one of these fixtures needs what the marker says. `make check` leaves such tests out.
MARKER_BY_FIXTURE = {"cluster": "spark", "local_spark": "local_spark", "browser": "browser"}


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--half", choices=("first", "second"), help="run only one half of the test files")


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> Generator[None, None, None]:
    for item in items:
        for fixture, marker in MARKER_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
    yield
    if config.getoption("--half") is not None:
        keep_one_half(config, items)


def keep_one_half(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Of the tests that the markers select, those of every other file, so that a module's fixtures are set up once."""
    files = list(dict.fromkeys(item.path for item in items))
    half = set(files[0 if config.getoption("--half") == "first" else 1 :: 2])
    config.hook.pytest_deselected(items=[item for item in items if item.path not in half])
    items[:] = [item for item in items if item.path in half]


def no_skips_allowed() -> bool:
    return os.environ.get("CI", "").lower() in ("1", "true")


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI a skipped test has failed: nobody would notice that it no longer runs."""
    report = yield
    if report.skipped and no_skips_allowed():
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI allows no skips: {reason_of(report)}"
    return report


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(
    collector: pytest.Collector,
) -> Generator[None, pytest.CollectReport, pytest.CollectReport]:
    """The same for a file that skips itself when it is imported."""
    report = yield
    if report.skipped and no_skips_allowed():
        report.outcome = "failed"
        report.longrepr = f"skipped, and CI allows no skips: {reason_of(report)}"
    return report


def reason_of(report: pytest.TestReport | pytest.CollectReport) -> str:
    return str(report.longrepr[2]) if isinstance(report.longrepr, tuple) else str(report.longrepr)
