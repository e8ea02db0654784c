"""The application under test: `homeostat run` as a service manager starts it, and its observable state."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from uuid import uuid4

from homeostat.core.objective import Objective
from homeostat.lab.chaos import processes
from homeostat.lab.chaos.log_watch import LogWatch
from homeostat.lab.chaos.processes import MARK_VARIABLE, Family
from homeostat.lab.chaos.running_clock import PatienceClock, RunningClock
from homeostat.lab.chaos.small_disk import SmallDisk
from homeostat.lab.chaos.steering import FILE_VARIABLE, PLUG_IN, Steering, write_steering
from homeostat.lab.ledger import last_batch
from homeostat.lab.load_profile import Profile
from homeostat.lab.rest_proxy import Proxy
from homeostat.lab.row_ledger import HandedOut
from homeostat.lab.wordcount import NAME, specification, write_app
from homeostat.runtime.launch import KNOBS, STARTED, read_json
from homeostat.sim.scenario.spec import WorkloadSpec

# 200 rows a second take a twentieth of the time of two executors, so that a busy machine is no reason to act.
PROFILE = Profile(WorkloadSpec("constant", rate_per_s=200.0), keys=5_000)
WAIT_MS, TRIGGER_S, EXECUTORS, STATE_PARTITIONS = 0.5, 1.0, 2, 4
WORKERS, CORES = 2, 3
OBJECTIVE = Objective(cost_limit=WORKERS * CORES)
# The load never changes, so there is never a reason to remove executors.
SETTINGS = f"""\
mode = "regulate"

[guards]
cooldown = "10 s"
cooldown_shrink = "1 day"
confirm = "1 day"

[plugins]
detectors = ["{PLUG_IN}"]
"""
LOOK_AGAIN_S = 0.25
RESTART_PAUSE_S = 1.0  # as RestartSec=1 of systemd
STOP_LIMIT_S = 180.0
# Spark announces its pages at this address, where the proxy listens, and serves them at 127.0.0.1.
PROXY_HOST = "127.0.0.88"
TAIL_LINES = 8


@dataclass
class Deployment:
    """Starts the command in `home`, starts it again whenever it ends, and reads its files."""

    home: Path
    disk: SmallDisk
    clock: RunningClock = field(default_factory=RunningClock)
    mark: str = field(default_factory=lambda: uuid4().hex)
    steering: Steering = Steering()
    exits: list[int] = field(default_factory=list)
    _process: subprocess.Popen[bytes] | None = None
    _start_again_s: float | None = None

    def __post_init__(self) -> None:
        self.patience = PatienceClock(self.clock)
        self.directory, self.ledger = self.home / "kept", self.home / "ledger"
        self.checkpoint = self.directory / "checkpoints" / NAME
        self.handed_out = HandedOut(self.checkpoint)
        self.hang_file = self.home / "hang"
        self.output = self.home / "output"
        self.log = LogWatch(self.disk.directory / "log.sqlite")
        self._steering_file = self.home / "steering.json"
        spec = specification(
            PROFILE,
            self.ledger,
            OBJECTIVE,
            wait_ms=WAIT_MS,
            trigger_s=TRIGGER_S,
            executors=EXECUTORS,
            state_partitions=STATE_PARTITIONS,
            hang_file=str(self.hang_file),
            by_row=True,
        )
        self.app = write_app(self.home / "app.py", spec)
        (self.home / "homeostat.toml").write_text(SETTINGS)
        self.port = _free_port()
        self.proxy = Proxy(f"http://127.0.0.1:{self.port}", host=PROXY_HOST, port=self.port)
        self.steer()

    def steer(self, **changes: Any) -> None:
        """Tell the detector in the driver what to do; without changes, nothing unusual."""
        self.steering = replace(Steering(number=self.steering.number + 1), **changes)
        write_steering(self._steering_file, self.steering)

    def command(self, directory: Path | None = None) -> list[str]:
        options = [
            *("--directory", str(directory or self.directory)),
            *("--store", str(self.log.path)),
            *("--workers", str(WORKERS)),
            *("--cores", str(CORES)),
            *("--conf", f"spark.ui.port={self.port}"),
            "--no-dashboard",
        ]
        return [sys.executable, "-m", "homeostat.cli.main", "run", str(self.app), *options]

    def environment(self, mark: str) -> dict[str, str]:
        return {
            **os.environ,
            MARK_VARIABLE: mark,
            FILE_VARIABLE: str(self._steering_file),
            "SPARK_PUBLIC_DNS": PROXY_HOST,
            "XDG_STATE_HOME": str(self.home / "state"),
        }

    def start(self) -> None:
        with self.output.open("ab") as output, _signals_held_back():
            self._process = subprocess.Popen(
                self.command(),
                cwd=self.home,
                env=self.environment(self.mark),
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                start_new_session=True,  # an interrupt from the terminal is for the bench, which then stops it
            )
        self._start_again_s = None

    def look(self) -> None:
        """Keep the service running, as systemd with Restart=always does, and read the log and the offsets."""
        self.log.look()
        self.handed_out.look()
        if self._process is None or self._process.poll() is None:
            return
        if self._start_again_s is None:
            self.exits.append(self._process.returncode)
            self._start_again_s = self.clock() + RESTART_PAUSE_S
        elif self.clock() >= self._start_again_s:
            self.start()

    def hold(self, seconds: float) -> None:
        until_s = self.clock() + seconds
        while self.clock() < until_s:
            self.look()
            time.sleep(LOOK_AGAIN_S)

    def wait(self, condition: Callable[[], bool], limit_s: float) -> bool:
        """Whether the condition came true within this many seconds of patience: see `PatienceClock`."""
        until_s = self.patience() + limit_s
        while not condition():
            if self.patience() > until_s:
                return False
            self.look()
            time.sleep(LOOK_AGAIN_S)
        return True

    def family(self) -> Family:
        return Family(self.mark)

    def commits(self) -> int:
        """The number of the last batch that is committed; -1 before the first."""
        newest = last_batch(self.checkpoint / "commits")
        return -1 if newest is None else newest

    @property
    def driver_facts(self) -> dict[str, Any]:
        facts = read_json(self.directory / STARTED)
        return facts if isinstance(facts, dict) else {}

    @property
    def wanted_executors(self) -> int:
        knobs = read_json(self.directory / KNOBS)
        counts = knobs.get("executors", {}) if isinstance(knobs, dict) else {}
        return int(sum(counts.values())) or EXECUTORS

    def knob(self, name: str) -> Any:
        knobs = read_json(self.directory / KNOBS)
        return knobs.get("values", {}).get(name) if isinstance(knobs, dict) else None

    def missing(self) -> str:
        """The parts of the application that are missing; empty if it is whole."""
        family = self.family()
        drivers = [process.pid for process in family.of(processes.DRIVER)]
        executors, wanted_executors = len(family.of(processes.EXECUTOR)), self.wanted_executors
        lacks = {
            "the supervisor is not running": len(family.of(processes.SUPERVISOR)) != 1,
            "the master is not running": len(family.of(processes.MASTER)) != 1,
            f"{len(family.of(processes.WORKER))} of {WORKERS} workers": len(family.of(processes.WORKER)) != WORKERS,
            "no driver has reported that it started": drivers != [self.driver_facts.get("process")],
            f"{executors} executors instead of {wanted_executors}": executors != wanted_executors,
        }
        return ", ".join(lack for lack, holds in lacks.items() if holds)

    def stop(self) -> int | None:
        """Interrupt the command as a user does, and return its exit code; None if it had to be killed."""
        process = self._process
        self._process = None
        if process is None:
            return None
        with suppress(ProcessLookupError):
            process.send_signal(signal.SIGINT)
        self.wait(lambda: process.poll() is not None, STOP_LIMIT_S)
        code = process.poll()
        if code is None:
            process.kill()
            process.wait()
        return code

    def kill(self) -> None:
        """Kill all processes, so that none of them can clean up."""
        process = self._process
        self._process = None
        while family := self.family().processes:
            processes.send(family, signal.SIGKILL)
            time.sleep(LOOK_AGAIN_S)
        if process is not None:
            process.wait()

    def last_lines(self) -> list[str]:
        """The end of what the command and its driver wrote, without the lines of tracebacks."""
        if not self.output.exists():
            return []
        with self.output.open(errors="replace") as lines:
            telling = (line.strip() for line in lines if line[0] not in " \n-")
            return list(deque(telling, maxlen=TAIL_LINES))


@contextmanager
def _signals_held_back() -> Iterator[None]:
    """Handle an interrupt only afterwards: in the middle of a start it would leave a process that nobody stops."""
    arrived: list[int] = []
    handlers = {
        number: signal.signal(number, lambda number, _: arrived.append(number))
        for number in (signal.SIGINT, signal.SIGTERM)
    }
    try:
        yield
    finally:
        for name, handler in handlers.items():
            signal.signal(name, handler)
        for number in arrived:
            signal.raise_signal(number)


def _free_port() -> int:
    """A port that is free at both addresses."""
    while True:
        with socket.socket() as ours, socket.socket() as proxys:
            ours.bind(("127.0.0.1", 0))
            port = int(ours.getsockname()[1])
            with suppress(OSError):
                proxys.bind((PROXY_HOST, port))
                return port
