"""The driver process: what it says when it cannot start. With Spark it is in tests/spark."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from homeostat.runtime import driver
from homeostat.runtime.launch import LEASE, Launch
from homeostat.runtime.lease import Lease

APP = """\
import homeostat as hs

@hs.pipeline(objective=hs.Provisioning())
def words(ctx):
    return None
"""


def main(launch: Launch, monkeypatch: pytest.MonkeyPatch) -> int:
    monkeypatch.setattr("sys.argv", ["driver", launch.to_json()])
    return driver.main()


def test_a_mistake_of_the_user_is_one_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(Launch("missing.py", "local[1]", str(tmp_path)), monkeypatch) == 2
    assert capsys.readouterr().err == (
        "homeostat: missing.py: no such application file (give the path of a Python file)\n"
    )


def test_a_directory_with_another_manager_is_left_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "app_of_driver_test.py").write_text(APP)
    with Lease(tmp_path / "kept" / LEASE):
        code = main(Launch("app_of_driver_test.py", "local[1]", str(tmp_path / "kept")), monkeypatch)
    assert code == 1
    assert f"another manager already controls this application (process {os.getpid()})" in capsys.readouterr().err


def test_the_unforeseen_is_one_line_that_names_the_log(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def broken(launch: Launch) -> int:
        raise ZeroDivisionError("by nought")

    monkeypatch.setattr(driver, "drive", broken)
    monkeypatch.delenv("HOMEOSTAT_DEBUG", raising=False)
    assert main(Launch("app.py", "local[1]", str(tmp_path)), monkeypatch) == 1
    assert capsys.readouterr().err == (
        f"homeostat: the driver failed: ZeroDivisionError: by nought (see {tmp_path / 'logs' / 'driver.log'}; "
        "set HOMEOSTAT_DEBUG=1 to print the traceback)\n"
    )
