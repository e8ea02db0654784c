"""What becomes of a driver that ends: a stand-in for it plays one life after the other, without Spark."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import psutil
import pytest

from homeostat.runtime import supervisor
from homeostat.runtime.launch import QUERY_FAILED, STARTED, SUPERVISOR, Launch, read_json
from homeostat.runtime.lease import Lease, LeaseTakenError
from homeostat.runtime.supervisor import DriverError, Supervisor
from homeostat.spark.cluster.embedded import ClusterError
from homeostat.spark.cluster.leftovers import LOCAL
from homeostat.store.sqlite import SqliteStore

STAND_IN = '''
"""Each life does the next line of the script; the last one is done again and again."""
import os, signal, subprocess, sys, time
from pathlib import Path
from homeostat.runtime.hold import ApplicationHold
from homeostat.runtime.launch import STARTED, Launch, write_json

launch = Launch.from_json(sys.argv[1])
directory = Path(launch.directory)
announced = {"store": str(directory / "log.sqlite"), "queries": {"words": "app/words"}}
with open(directory / "lives", "a") as lives:
    print(launch.for_s, file=lives)
number = len((directory / "lives").read_text().splitlines())
script = (directory / "script").read_text().splitlines()
for order in script[min(number, len(script)) - 1].split():
    if order == "up":
        hold = ApplicationHold(directory, directory / "log.sqlite")
        hold.take_files()
        hold.take_log()
        hold.open_log("app/words").close()
        announced |= {"process": os.getpid(), "identity": hold.identity.id, "up_s": time.monotonic() - 4.0}
        write_json(directory / STARTED, announced)
    elif order == "killed":
        os.kill(os.getpid(), signal.SIGKILL)
    elif order in ("child", "deaf"):
        # Like Spark's Java process: in a group of its own, and perhaps deaf to a polite request.
        how = "signal.SIG_IGN" if order == "deaf" else "signal.SIG_DFL"
        sleep = f"import signal, time; signal.signal(15, {how}); print(1, flush=True); time.sleep(600)"
        child = subprocess.Popen([sys.executable, "-c", sleep], stdout=subprocess.PIPE, start_new_session=True)
        child.stdout.readline()
        (directory / "child").write_text(str(child.pid))
    elif order == "leaves":
        (directory / "local" / "blockmgr-1").mkdir(parents=True)
    elif order == "waits":
        time.sleep(600)
    else:
        sys.exit(int(order))
'''


Until = Callable[[Callable[[], bool]], None]


@pytest.fixture
def until() -> Until:
    def wait(condition: Callable[[], bool]) -> None:
        limit_s = time.monotonic() + 60.0
        while not condition():
            assert time.monotonic() < limit_s
            time.sleep(0.05)

    return wait


def runs(pid: int) -> bool:
    """One that has ended may still be listed until somebody asks how."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


class Stage:
    """A directory, a script for the stand-in, and what the supervisor said."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.messages: list[str] = []

    def supervisor(self, *script: str, for_s: float | None = None) -> Supervisor:
        (self.directory / "script").write_text("\n".join(script))
        launch = Launch("app.py", "local[1]", str(self.directory), for_s=for_s)
        return Supervisor(launch, workers=1, cores=1, say=self.messages.append)

    @property
    def lives(self) -> list[str]:
        return (self.directory / "lives").read_text().splitlines()


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    (tmp_path / "stand_in_driver.py").write_text(STAND_IN)
    monkeypatch.setenv("PYTHONPATH", str(tmp_path), prepend=os.pathsep)
    monkeypatch.setattr(supervisor, "DRIVER_MODULE", "stand_in_driver")
    monkeypatch.setattr(supervisor, "FIRST_PAUSE_S", 0.01)
    return Stage(tmp_path)


def test_a_driver_that_ends_in_order_ends_the_run(stage: Stage) -> None:
    assert stage.supervisor("up 0").run() == 0
    assert len(stage.lives) == 1


def test_a_driver_that_never_came_up_and_says_why_is_not_tried_again(stage: Stage) -> None:
    assert stage.supervisor("2").run() == 2
    assert len(stage.lives) == 1
    assert stage.messages == []


@pytest.mark.slow
def test_a_driver_that_is_killed_is_started_again_up_or_not(stage: Stage) -> None:
    running = stage.supervisor("up killed", "killed", "2", "up 0")
    assert running.run() == 0
    assert running.restarts == 3
    assert stage.messages == [
        "the driver ended with code -9; restarting it (restart 1)",
        "the driver ended with code -9; restarting it (restart 2)",
        "the driver ended with code 2; restarting it (restart 3)",
    ]


def test_a_query_that_the_driver_gave_up_is_not_tried_again(stage: Stage) -> None:
    running = stage.supervisor(f"up {QUERY_FAILED}")
    assert running.run() == QUERY_FAILED
    assert (len(stage.lives), running.restarts) == (1, 0)


def test_temporary_files_of_a_driver_that_was_killed_are_gone_before_the_next_one_starts(stage: Stage) -> None:
    left = stage.directory / LOCAL / "blockmgr-1"
    running = stage.supervisor("up leaves killed", "up 0")
    assert running.run() == 0
    assert running.restarts == 1
    assert left.parent.is_dir()
    assert not left.exists()


@pytest.mark.slow
def test_one_killed_before_it_was_ever_up_is_started_again(stage: Stage) -> None:
    assert stage.supervisor("killed", "up 0").run() == 0


@pytest.mark.slow
def test_one_that_dies_too_often_is_given_up(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(supervisor, "MOST_RESTARTS", 2)
    with pytest.raises(DriverError, match="the driver died 3 times within 10 minutes, last with code -9"):
        stage.supervisor("up killed").run()
    assert len(stage.lives) == 3
    (alert,) = SqliteStore(stage.directory / "log.sqlite").records("app/words", kinds=("alert",))
    assert alert.text.startswith("The driver died too often (the driver died 3 times within 10 minutes")


@pytest.mark.slow
def test_the_time_given_to_the_run_goes_on_while_drivers_die(stage: Stage) -> None:
    """The stand-in says that it has been up for four seconds already."""
    stage.supervisor("up killed", "up killed", "up 0", for_s=6.0).run()
    first, second, third = (float(line) for line in stage.lives)
    assert first == 6.0
    assert 0.0 <= second <= 2.0
    assert third == 0.0


@pytest.mark.slow
def test_all_that_a_driver_started_is_gone_before_the_next_one_starts(stage: Stage) -> None:
    running = stage.supervisor("deaf up killed", "up waits")
    child_runs: list[bool] = []

    def look() -> None:
        if len(stage.lives if (stage.directory / "lives").exists() else []) == 2:
            child_runs.append(runs(int((stage.directory / "child").read_text())))
            running.stop()

    running.run(look)
    assert child_runs
    assert not any(child_runs)


def test_a_stop_that_is_asked_for_ends_the_driver(stage: Stage) -> None:
    running = stage.supervisor("up waits")

    def once_up() -> None:
        if (stage.directory / STARTED).exists():
            running.stop()

    assert running.run(once_up) == -signal.SIGTERM
    assert not runs(running.driver_pid)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_stops_in_order(stage: Stage, number: signal.Signals) -> None:
    running = stage.supervisor("up waits")

    def once_up() -> None:
        if (stage.directory / STARTED).exists() and len(stage.messages) == 0:
            stage.messages.append("interrupted")
            os.kill(os.getpid(), number)

    assert running.run(once_up) == 130
    assert not runs(running.driver_pid)
    assert signal.getsignal(signal.SIGTERM) == signal.SIG_DFL


def test_a_second_interrupt_does_not_wait(stage: Stage) -> None:
    running = stage.supervisor("child up waits")

    def twice() -> None:
        if (stage.directory / STARTED).exists():
            os.kill(os.getpid(), signal.SIGINT)
            os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        running.run(twice)
    assert not runs(running.driver_pid)
    assert not runs(int((stage.directory / "child").read_text()))


def test_a_second_supervisor_is_refused_before_it_starts_anything(stage: Stage) -> None:
    with Lease(stage.directory / SUPERVISOR), pytest.raises(LeaseTakenError):
        stage.supervisor("up 0").run()
    assert not (stage.directory / "lives").exists()


@pytest.mark.slow
def test_a_supervisor_that_is_killed_takes_all_with_it(stage: Stage, until: Until) -> None:
    stage.supervisor("child up waits")
    launch = Launch("app.py", "local[1]", str(stage.directory))
    program = (
        "import sys\nfrom homeostat.runtime import supervisor as s\nfrom homeostat.runtime.launch import Launch\n"
        "s.DRIVER_MODULE = 'stand_in_driver'\n"
        "s.Supervisor(Launch.from_json(sys.argv[1]), workers=1, cores=1, say=print).run()\n"
    )
    with subprocess.Popen([sys.executable, "-c", program, launch.to_json()]) as running:
        until(lambda: (stage.directory / STARTED).exists())
        os.kill(running.pid, signal.SIGKILL)
    pids = [read_json(stage.directory / STARTED)["process"], int((stage.directory / "child").read_text())]
    until(lambda: not any(runs(pid) for pid in pids))


class StandInCluster:
    """Its first life loses a worker, then its master, once the driver is up; the second one is healthy."""

    def __init__(self, directory: Path, *, workers: int, cores: int) -> None:
        self._announcement = directory.parent / STARTED
        self._worker_is_lost = False
        self.lives = 0

    @property
    def master_url(self) -> str:
        return f"local[{self.lives}]"

    def __enter__(self) -> StandInCluster:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        self.lives += 1

    def stop(self) -> None:
        self._announcement.unlink(missing_ok=True)

    def mend(self) -> list[str]:
        if self.lives > 1 or not self._announcement.exists():
            return []
        if not self._worker_is_lost:
            self._worker_is_lost = True
            return ["127.0.0.2"]
        raise ClusterError("the Spark master ended with code -9")


def test_a_lost_worker_is_reported_and_a_lost_master_starts_cluster_and_driver_again(
    stage: Stage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(supervisor, "EmbeddedCluster", StandInCluster)
    (stage.directory / "script").write_text("up waits\nup 0")
    running = Supervisor(Launch("app.py", "", str(stage.directory)), workers=1, cores=1, say=stage.messages.append)
    assert running.run() == 0
    assert stage.messages[1:] == [
        "the Spark worker on 127.0.0.2 ended; it was started again",
        "the Spark master ended with code -9; restarting everything (restart 1)",
    ]
    assert len(stage.lives) == 2
