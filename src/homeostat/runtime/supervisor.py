"""Starts the cluster and the driver of an application, and starts the driver again when it dies."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from pathlib import Path
from types import FrameType

from homeostat.core.errors import HomeostatError
from homeostat.runtime.launch import STARTED, SUPERVISOR, Launch, read_json, require_master
from homeostat.runtime.lease import Lease
from homeostat.spark.cluster.embedded import EmbeddedCluster
from homeostat.spark.cluster.process_keeper import Keeper, send_signal

DRIVER = "driver"
DRIVER_MODULE = "homeostat.runtime.driver"
LOOK_AGAIN_S = 0.2
STOP_LIMIT_S = 60.0
MOST_RESTARTS = 5
RESTARTS_WITHIN_S = 600.0
FIRST_PAUSE_S = 1.0
INTERRUPTED = 130


class DriverError(HomeostatError):
    """The driver does not stay up."""


class Supervisor:
    """Runs one application until it ends, is stopped, or dies too often. `say` gets one line for what happens.

    The driver writes where this process does, or into `log`."""

    def __init__(
        self, launch: Launch, *, workers: int, cores: int, say: Callable[[str], None], log: Path | None = None
    ) -> None:
        self._launch, self._say, self._log = launch, say, log
        self._workers, self._cores = workers, cores
        self._stop_asked: str = ""
        self.restarts = 0
        self.driver_pid = 0

    def stop(self, why: str = "asked to") -> None:
        self._stop_asked = why

    @property
    def stopping(self) -> bool:
        return bool(self._stop_asked)

    def run(self, each_moment: Callable[[], None] = lambda: None, *, prepare: Callable[[], None] = lambda: None) -> int:
        """The exit code. `each_moment` is called a few times a second: a place for a view. `prepare` is called before
        anything starts, once nobody else can be at work in the directory."""
        directory = Path(self._launch.directory)
        with ExitStack() as stack:
            launch = self._launch
            stack.enter_context(Lease(directory / SUPERVISOR))
            prepare()
            if launch.master:
                require_master(launch.master)
            else:
                self._say(f"starting a cluster of {self._workers} workers with {self._cores} cores each")
                cluster = EmbeddedCluster(directory / "cluster", workers=self._workers, cores=self._cores)
                master = stack.enter_context(cluster).master_url
                launch = replace(launch, master=master, room=self._workers * self._cores)
            stack.enter_context(self._signals())
            return self._supervise(launch, each_moment)

    def _supervise(self, launch: Launch, each_moment: Callable[[], None]) -> int:
        """An end in order before the driver was ever up is an answer; any other is a death to recover from."""
        died: list[float] = []
        ever_up = False
        while True:
            code = self._one_life(launch, each_moment)
            up_s = self._up_since()
            ever_up = ever_up or up_s is not None
            if code == 0 or self._stop_asked or (code > 0 and not ever_up):
                return INTERRUPTED if self._stop_asked == "interrupted" else code
            died = [at for at in died if time.monotonic() - at < RESTARTS_WITHIN_S] + [time.monotonic()]
            if len(died) > MOST_RESTARTS:
                minutes = RESTARTS_WITHIN_S / 60
                raise DriverError(
                    f"the driver died {len(died)} times within {minutes:.0f} minutes, last with code {code}",
                    where=launch.app,
                    fix=f"see {Path(launch.directory) / 'logs'}",
                )
            self.restarts += 1
            self._say(f"the driver ended with code {code}; starting it again ({self.restarts})")
            self._pause(FIRST_PAUSE_S * 2 ** (len(died) - 1))
            if launch.for_s is not None and up_s is not None:
                launch = replace(launch, for_s=max(0.0, launch.for_s - (time.time() - up_s)))

    def _up_since(self) -> float | None:
        """When the latest driver was up; None if it never was."""
        started = read_json(Path(self._launch.directory) / STARTED)
        ours = isinstance(started, dict) and started.get("process") == self.driver_pid
        return float(started["started_s"]) if ours else None

    def _one_life(self, launch: Launch, each_moment: Callable[[], None]) -> int:
        """With a keeper of its own: when the driver is gone, so is all that it has started, before another begins."""
        command = [sys.executable, "-m", DRIVER_MODULE, launch.to_json()]
        environment = {**os.environ, "PYTHONUNBUFFERED": "1"}
        if self._log is not None:
            self._log.parent.mkdir(parents=True, exist_ok=True)
        keeper = Keeper()
        try:
            self.driver_pid = keeper.start(DRIVER, command, environment=environment, log=self._log)
            return self._until_it_ends(keeper, each_moment)
        finally:
            keeper.close()

    def _until_it_ends(self, keeper: Keeper, each_moment: Callable[[], None]) -> int:
        asked_s = 0.0
        while (code := keeper.code(DRIVER)) is None:
            each_moment()
            if self._stop_asked and not asked_s:
                asked_s = time.monotonic()
                send_signal(self.driver_pid, signal.SIGTERM)
            elif asked_s and time.monotonic() - asked_s > STOP_LIMIT_S:
                send_signal(self.driver_pid, signal.SIGKILL)
            time.sleep(LOOK_AGAIN_S)
        return code

    def _pause(self, seconds: float) -> None:
        until_s = time.monotonic() + seconds
        while time.monotonic() < until_s and not self._stop_asked:
            time.sleep(LOOK_AGAIN_S)

    @contextmanager
    def _signals(self) -> Iterator[None]:
        """The first Ctrl-C or TERM stops in order; the second one at once."""

        def asked(number: int, frame: FrameType | None) -> None:
            if self._stop_asked:
                raise KeyboardInterrupt
            self._stop_asked = "interrupted"

        before = {number: signal.signal(number, asked) for number in (signal.SIGINT, signal.SIGTERM)}
        try:
            yield
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
