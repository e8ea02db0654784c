"""`homeostat run` as a user runs it, in processes of its own: how it ends, what it leaves, and what it refuses."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import psutil
import pytest

from homeostat.lab.ledger import check, committed_rows, recorded_rows
from homeostat.lab.load_profile import Profile
from homeostat.lab.wordcount import NAME, specification, write_app
from homeostat.runtime.launch import KNOBS, STARTED, read_json
from homeostat.sim.scenario.spec import WorkloadSpec
from homeostat.store.sqlite import SqliteStore
from support.paths import ROOT

pytestmark = pytest.mark.spark

WaitUntil = Callable[[Callable[[], bool], str], None]

PROFILE = Profile(WorkloadSpec("constant", rate_per_s=200.0), keys=50)
SMALL = ("--workers", "2", "--cores", "1")
END_LIMIT_S = 300.0
JAVA_SAYS = "WARNING: Using incubator modules: jdk.incubator.vector"


class Command:
    """`homeostat run` of a word count in a directory of its own, and all processes below it."""

    def __init__(self, home: Path) -> None:
        self.home, self.directory = home, home / "kept"
        self.ledger, self.checkpoint = home / "ledger", self.directory / "checkpoints" / NAME
        self.output = home / "output"
        self.app = write_app(home / "app.py", specification(PROFILE, self.ledger, wait_ms=0.5))
        self._process: subprocess.Popen[bytes] | None = None

    def start(self, *options: str, app: str = "") -> subprocess.Popen[bytes]:
        store = ("--directory", str(self.directory), "--store", str(self.home / "log.sqlite"))
        with self.output.open("ab") as output:
            self._process = subprocess.Popen(
                [sys.executable, "-m", "homeostat.cli.main", "run", app or str(self.app), *store, *options],
                cwd=self.home,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
            )
        return self._process

    def run(self, *options: str, app: str = "") -> tuple[int, list[str]]:
        """The exit code, and what it said."""
        self.output.write_text("")
        code = self.start(*options, app=app).wait(END_LIMIT_S)
        lines = self.output.read_text().splitlines()
        return code, [line for line in lines if line != JAVA_SAYS]

    def close(self) -> None:
        if self._process is not None and self._process.poll() is None:
            self._process.kill()
            self._process.wait()

    def family(self) -> list[Any]:
        assert self._process is not None
        return [each for each in psutil.Process(self._process.pid).children(recursive=True) if runs(each)]

    def family_is_gone(self) -> bool:
        """Nobody is left who was told of this directory."""
        commands = [" ".join(each.info["cmdline"] or []) for each in psutil.process_iter(["cmdline"])]
        return not any(str(self.directory) in command for command in commands)

    def batches(self) -> int:
        return len(list(self.ledger.glob("*.parquet")))

    def differences(self) -> list[str]:
        rows = max(committed_rows(self.checkpoint), recorded_rows(self.ledger, self.checkpoint))
        assert rows > 0
        return check(self.ledger, PROFILE, rows)


@pytest.fixture
def command(tmp_path: Path) -> Iterator[Command]:
    command_here = Command(tmp_path)
    yield command_here
    command_here.close()


def runs(process: Any) -> bool:
    """One that has ended may still be listed until somebody asks how."""
    try:
        return process.is_running() and bool(process.status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def kinds(processes: list[Any]) -> set[str]:
    signs = {
        "deploy.master.Master": "master",
        "deploy.worker.Worker": "worker",
        "CoarseGrainedExecutorBackend": "executor",
        "homeostat.runtime.driver": "driver",
        "pyspark-shell": "the driver's Spark",
        "pyspark.daemon": "Python worker",
    }
    commands = [" ".join(process.cmdline()) for process in processes]
    return {kind for sign, kind in signs.items() if any(sign in command for command in commands)}


@pytest.mark.soak
def test_killed_and_run_again_nothing_stays_behind_and_every_row_counts_once(
    command: Command, wait_until: WaitUntil
) -> None:
    running = command.start(*SMALL, "--mode", "observe")
    wait_until(lambda: running.poll() is not None or (command.directory / STARTED).exists(), "the driver is up")
    assert running.poll() is None, command.output.read_text()
    wait_until(lambda: command.batches() >= 3, "three batches are done")

    second = Command(command.home)
    code, lines = second.run(*SMALL, "--no-dashboard")
    assert code == 1
    assert lines == [
        f"homeostat: {command.directory}: another manager already controls this application (process {running.pid}) "
        "(stop it first, or choose another directory)"
    ]
    before = command.batches()
    wait_until(lambda: command.batches() > before, "the first one goes on")

    family = command.family()
    assert kinds(family) == {"master", "worker", "executor", "driver", "the driver's Spark", "Python worker"}
    os.kill(running.pid, signal.SIGKILL)
    running.wait()
    wait_until(lambda: not any(runs(process) for process in family), "everything is gone")
    assert command.differences() == []

    knobs, before = read_json(command.directory / KNOBS), command.batches()
    (command.directory / STARTED).unlink()
    running = command.start(*SMALL, "--mode", "observe", "--for", "6 s")
    wait_until(lambda: running.poll() is not None or (command.directory / STARTED).exists(), "the driver is up")
    family = command.family()
    assert running.wait(END_LIMIT_S) == 0, command.output.read_text()
    assert [process for process in family if runs(process)] == []
    assert command.batches() > before
    assert read_json(command.directory / KNOBS) == knobs
    assert command.differences() == []
    records = SqliteStore(command.home / "log.sqlite", read_only=True).records(f"kept/{NAME}", kinds=["batch"])
    assert {record.body["executors"] for record in records} == {2}


def test_the_example_runs_with_functions_of_its_own(command: Command) -> None:
    example = str(ROOT / "examples" / "wordcount.py")
    code, lines = command.run("--master", "local[2]", "--mode", "observe", "--for", "1 s", app=example)
    assert code == 0, lines
    assert any("Batch: 0" in line for line in lines)
    assert any(line.startswith("homeostat: dashboard at http://127.0.0.1:") for line in lines)
    assert "parallelism.wordcount/split" in read_json(command.directory / KNOBS)["values"]


def test_a_pipeline_that_raises_is_one_line_and_nothing_stays_running(command: Command) -> None:
    command.app.write_text(
        "import homeostat as hs\n\n@hs.pipeline()\ndef words(ctx):\n    raise ValueError('no such topic')\n"
    )
    code, lines = command.run("--master", "local[1]", "--no-dashboard")
    assert code == 2
    assert lines == [f"homeostat: query words: cannot start: {command.app}:5 raises ValueError: no such topic"]


def test_a_setting_that_spark_cannot_start_with_is_one_line(command: Command) -> None:
    code, lines = command.run("--master", "local[1]", "--no-dashboard", "--conf", "spark.driver.memory=lots")
    assert code == 2
    reason = "Invalid maximum heap size: -Xmxlots"
    fix = f"see the files in {command.directory / 'logs'}"
    assert lines == [f"homeostat: Spark did not start on local[1]: {reason} ({fix})"]
    assert command.family_is_gone()


@pytest.mark.soak
def test_what_ends_every_connection_is_tried_as_a_master_and_given_up(command: Command) -> None:
    """A master that speaks TLS alone does so, too: only Spark can tell."""
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            with suppress(OSError):  # which ends it
                while True:
                    listening.accept()[0].close()

        threading.Thread(target=serve, daemon=True).start()
        master = f"spark://127.0.0.1:{listening.getsockname()[1]}"
        code, lines = command.run("--master", master, "--no-dashboard")
        listening.shutdown(socket.SHUT_RDWR)
    assert code == 2
    reason = "All masters are unresponsive! Giving up."
    fix = f"see the files in {command.directory / 'logs'}"
    assert lines == [f"homeostat: Spark did not start on {master}: {reason} ({fix})"]
    assert command.family_is_gone()


BROKER_IS_DOWN = """\
import homeostat as hs

@hs.pipeline(trigger="1 s")
def words(ctx):
    lines = ctx.read_stream("kafka").option("kafka.bootstrap.servers", "127.0.0.1:{port}").option("subscribe", "lines")
    return lines.load().writeStream.format("noop")
"""


def test_a_broker_that_is_down_at_the_start_is_reported_at_once_and_the_run_can_be_interrupted(
    command: Command, wait_until: WaitUntil, kafka_jars: None
) -> None:
    with socket.socket() as nobody:  # bound, and never listening
        nobody.bind(("127.0.0.1", 0))
        command.app.write_text(BROKER_IS_DOWN.format(port=nobody.getsockname()[1]))
        running = command.start("--master", "local[1]", "--mode", "observe", "--no-dashboard")
        line = re.compile(
            r"homeostat: query words has not finished a batch after \d+ s; Spark reports: Getting offsets from"
        )
        wait_until(
            lambda: running.poll() is not None or bool(line.search(command.output.read_text())),
            "it was told what the query waits for",
        )
        assert running.poll() is None, command.output.read_text()
        running.send_signal(signal.SIGINT)
        assert running.wait(END_LIMIT_S) == 130
    assert "Traceback" not in command.output.read_text()
    assert command.family_is_gone()


IGNORES_CTX = """\
import homeostat as hs

@hs.pipeline(trigger="1 s")
def words(ctx):
    rows = ctx.spark.readStream.format("rate").option("rowsPerSecond", 10).load()
    return rows.groupBy({key}).count().writeStream.outputMode("update").format("noop")
"""


@pytest.mark.soak
def test_a_pipeline_that_ignores_ctx_runs_and_another_is_refused_its_checkpoint(
    command: Command, wait_until: WaitUntil
) -> None:
    alone = ("--master", "local[1]", "--mode", "observe", "--no-dashboard")
    command.app.write_text(IGNORES_CTX.format(key="rows.value % 5"))
    running = command.start(*alone)
    checkpoint = command.directory / "checkpoints" / "words"
    wait_until(lambda: running.poll() is not None or (checkpoint / "commits" / "2").exists(), "three batches are done")
    assert running.poll() is None, command.output.read_text()
    running.terminate()
    assert running.wait(END_LIMIT_S) == 130
    knobs = {name.partition(".")[0] for name in read_json(command.directory / KNOBS)["values"]}
    assert knobs == {"trigger_s", "state_partitions", "changelog_checkpointing"}

    command.app.write_text(IGNORES_CTX.format(key="'value', 'timestamp'"))
    code, (line,) = command.run(*alone)
    assert code == 2
    assert line.startswith(f"homeostat: query words: the checkpoint {checkpoint} belongs to another query (")
    assert command.family_is_gone()
