"""A deployment that runs a program that only waits, instead of Spark."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.lab.chaos.deployment import Deployment
from homeostat.lab.chaos.small_disk import SmallDisk

LIMIT_S = 60.0


class WaitingProgram(Deployment):
    def command(self, directory: Path | None = None) -> list[str]:
        # No Python: interrupted while it starts, Python ends with another code.
        return ["sh", "-c", "exec sleep 600", str(directory or "")]


def is_waiting(deployment: Deployment) -> bool:
    """Whether its program has started. Before that, the process may have no environment, and thus not be found."""
    return [process.name() for process in deployment.family().processes] == ["sleep"]


@pytest.fixture
def waiting_program(tmp_path: Path) -> Iterator[Deployment]:
    """With a directory for the log that is not a file system of its own."""
    (tmp_path / "log").mkdir()
    deployment = WaitingProgram(tmp_path, SmallDisk(tmp_path / "log"))
    with deployment.proxy:
        deployment.start()
        assert deployment.wait(lambda: is_waiting(deployment), LIMIT_S)
        yield deployment
        deployment.kill()
