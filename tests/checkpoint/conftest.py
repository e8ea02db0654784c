"""The session, the command and the small checkpoint of the tests in this directory."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

from support.small_checkpoint import put, write_batch

if TYPE_CHECKING:
    from pyspark.sql import SparkSession


@pytest.fixture(scope="session")
def spark(checkpoint_spark: SparkSession) -> SparkSession:
    return checkpoint_spark


@pytest.fixture
def homeostat(spark: SparkSession, homeostat: Callable[..., Any]) -> Callable[..., Any]:
    """The program in this process, whose session its commands use."""
    return homeostat


@pytest.fixture
def sit_at_a_terminal(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Call it in the test, which has another stderr than its fixtures. From then on messages go to a terminal; what is
    printed may go elsewhere."""

    def sit() -> None:
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setattr(sys.stderr, "isatty", lambda: True)

    return sit


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A checkpoint with the batches 0 and 1."""
    path = tmp_path / "ckpt"
    put(path / "metadata", '{"id": "the-query"}')
    for batch in (0, 1):
        write_batch(path, batch)
    return path
