"""What is wrong with a run is told before anything of it is started, or not at all."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from homeostat.core.errors import ConfigError, DamagedLogError
from homeostat.runtime import preflight
from homeostat.runtime.launch import Launch
from homeostat.store.sqlite import SqliteStore

APP = """\
import homeostat as hs

@hs.pipeline(objective=hs.{objective})
def words(ctx):
    return None
"""
THROUGHPUT, LAG, NOTHING = "Throughput(at_least=100)", "Lag(at_most='30 s')", "Provisioning()"


@pytest.fixture(autouse=True)
def _as_it_was(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loading an application changes what can be imported, as it should in a process of its own."""
    monkeypatch.chdir(tmp_path)
    path, modules = list(sys.path), dict(sys.modules)
    yield
    sys.path[:] = path
    for name in set(sys.modules) - set(modules):
        del sys.modules[name]


def launch(directory: Path, pipeline_objective: str, **flags: object) -> Launch:
    app = directory / "app.py"
    app.write_text(APP.format(objective=pipeline_objective))
    return Launch(str(app), "local[1]", str(directory), flags={"store": str(directory / "log.sqlite"), **flags})


@pytest.mark.parametrize(
    ("policy", "objective"),
    [
        ("throughput", THROUGHPUT),
        ("throughput.paper", THROUGHPUT),
        ("latency", LAG),
        ("provisioning", NOTHING),
        ("ds2", THROUGHPUT),
    ],
)
def test_what_the_pipeline_wants_is_what_the_policy_pursues(policy: str, objective: str, tmp_path: Path) -> None:
    config, (pipeline,) = preflight.check(launch(tmp_path, objective, policy=policy))
    assert (config.policy, pipeline.name) == (policy, "words")


@pytest.mark.parametrize(
    ("policy", "objective", "line"),
    [
        (
            "throughput",
            LAG,
            "--policy: policy 'throughput' needs a throughput objective "
            '(set throughput in [objective], such as "50 k/s")',
        ),
        (
            "latency",
            NOTHING,
            "--policy: policy 'latency' needs a latency or lag objective "
            '(set latency or lag in [objective], such as "30 s")',
        ),
        (
            "ds2",
            "Cost(at_most=3)",
            "--policy: policy 'ds2' ignores 'cost_limit' (remove the limit, or choose another policy)",
        ),
        (
            "static",
            THROUGHPUT,
            "--policy: the policy static does not know the peak load that it must be sized for "
            "(set peak_per_s to the largest expected rate, or choose another policy)",
        ),
        (
            "no.such:thing",
            THROUGHPUT,
            "no.such:thing: cannot import 'no.such': No module named 'no' (check the path and install the package)",
        ),
    ],
)
def test_a_policy_that_cannot_do_it_is_refused(policy: str, objective: str, line: str, tmp_path: Path) -> None:
    with pytest.raises(ConfigError) as refused:
        preflight.check(launch(tmp_path, objective, policy=policy))
    assert refused.value.line == line


def test_an_objective_of_the_settings_wins(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs a throughput objective"):
        preflight.check(launch(tmp_path, THROUGHPUT, policy="throughput", objective={"lag": "30 s"}))


def test_a_damaged_log_does_not_keep_the_job_from_starting(tmp_path: Path) -> None:
    start = launch(tmp_path, THROUGHPUT)
    log = tmp_path / "log.sqlite"
    SqliteStore(log).close()
    os.truncate(log, 5_000)
    with pytest.raises(DamagedLogError):
        SqliteStore(log).close()
    preflight.check(start)
    assert log.stat().st_size == 5_000, "the manager moves it aside"


@pytest.mark.slow
def test_checked_in_a_process_of_its_own(tmp_path: Path) -> None:
    start = launch(tmp_path, THROUGHPUT)
    check = [sys.executable, "-m", "homeostat.runtime.preflight", start.to_json()]
    assert subprocess.run(check, capture_output=True, check=False).returncode == 0
    Path(start.app).write_text("1 / 0\n")
    result = subprocess.run(check, capture_output=True, text=True, check=False)
    expected = f"homeostat: {start.app}:1: importing the file raised ZeroDivisionError: division by zero\n"
    assert (result.returncode, result.stderr) == (2, expected)
