"""Which tests run where: markers by fixture, halves for two processes, files for Spark, and no skips in CI."""

from __future__ import annotations

import os
import re
from collections.abc import Generator
from functools import cache
from pathlib import Path

import pytest

# A test that uses one of these fixtures needs what the marker says. `make check` leaves such tests out.
MARKER_BY_FIXTURE = {
    "cluster": "spark",
    "local_spark": "local_spark",
    "kafka": "local_spark",
    "kafka_jars": "local_spark",
    "browser": "browser",
    "postgres": "postgres",
}
# A file whose tests need Spark contains one of these, or a conftest.py of its directories does.
NEEDS_SPARK = re.compile(
    r"mark\.(local_)?spark|spark: SparkSession"
    r"|\b(cluster|kafka|kafka_jars|\w+_spark|live_executors|two_executors)\b"
)


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--half", choices=("first", "second"), help="use only one half of the test files")
    parser.addoption("--on-spark", action="store_true", help="use only the test files that may need Spark")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    for item in items:
        for fixture, marker in MARKER_BY_FIXTURE.items():
            if fixture in getattr(item, "fixturenames", ()):
                item.add_marker(marker)
        needs_spark = item.get_closest_marker("spark") or item.get_closest_marker("local_spark")
        if needs_spark and not may_need_spark(item.path, config.rootpath):
            raise pytest.UsageError(f"--on-spark leaves out {item.nodeid}: its file should name the fixture or marker")


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """The other files are not even imported, which takes as long as many tests."""
    if not collection_path.match("test_*.py"):
        return None
    half = config.getoption("--half")
    if half is not None and collection_path not in halves(config.rootpath)[half]:
        return True
    if config.getoption("--on-spark") and not may_need_spark(collection_path, config.rootpath):
        return True
    return None


@cache
def may_need_spark(file: Path, root: Path) -> bool:
    """Whether the file or a conftest.py below `tests` mentions a fixture or marker of Spark. Others need none."""
    directories = [each for each in file.parents if each.is_relative_to(root / "tests") and each != root / "tests"]
    texts = [file, *(each / "conftest.py" for each in directories)]
    return any(NEEDS_SPARK.search(each.read_text(encoding="utf-8")) for each in texts if each.exists())


@cache
def halves(root: Path) -> dict[str, frozenset[Path]]:
    """Divide the test files. Of four in a row, the outer two go to the first half: neighbours are alike, so that both
    halves take about as long. A file stays whole, so that a module's fixtures are set up once."""
    files = sorted(root.glob("tests/**/test_*.py"))
    first = frozenset(file for number, file in enumerate(files) if number % 4 in (0, 3))
    return {"first": first, "second": frozenset(files) - first}


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
